//! What a function may be made to return instead of what it computes, by the type that it names.
//!
//! Nothing is known of a type but its text, so values are guesses; the compiler says which of them are wrong.

use quote::ToTokens;
use syn::{GenericArgument, PathArguments, ReturnType, Type, TypePath, TypeReference};

/// Expressions for the result of a function; none where the type cannot be made up.
pub(super) fn results(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".into()],
        ReturnType::Type(_, of) => values(of),
    }
}

fn values(of: &Type) -> Vec<String> {
    match of {
        Type::Path(it) => path(it),
        Type::Reference(it) => reference(it),
        Type::Tuple(it) => it
            .elems
            .iter()
            .fold(vec!["(".into()], append_element)
            .into_iter()
            .map(|it: String| it + ")")
            .collect(),
        Type::Array(it) => {
            let n = it.len.to_token_stream();
            each(&it.elem, |value| format!("[{value}; {n}]"))
        }
        Type::Paren(it) => values(&it.elem),
        // Types without a name, such as `impl Trait`, have no values that can be written down.
        _ => Vec::new(),
    }
}

fn append_element(begun: Vec<String>, element: &Type) -> Vec<String> {
    let all = |begun: String| each(element, move |value| format!("{begun}{value},"));
    begun.into_iter().flat_map(all).collect()
}

fn path(of: &TypePath) -> Vec<String> {
    let Some(last) = of.path.segments.last() else {
        return Vec::new();
    };
    let arguments = arguments(&last.arguments);
    match (last.ident.to_string().as_str(), arguments.as_slice()) {
        ("bool", _) => strings(&["true", "false"]),
        ("String", _) => strings(&["String::new()", "\"xyzzy\".into()"]),
        ("u8" | "u16" | "u32" | "u64" | "u128" | "usize", _) => strings(&["0", "1"]),
        ("i8" | "i16" | "i32" | "i64" | "i128" | "isize", _) => strings(&["0", "1", "-1"]),
        ("f32" | "f64", _) => strings(&["0.0", "1.0", "-1.0"]),
        ("Option", [some]) => {
            let mut values = strings(&["None"]);
            values.extend(each(some, |it| format!("Some({it})")));
            values
        }
        ("Result", [ok, ..]) => each(ok, |it| format!("Ok({it})")),
        ("Result", []) => strings(&["Ok(Default::default())"]),
        ("Vec", [element]) => {
            let mut values = strings(&["vec![]"]);
            values.extend(each(element, |it| format!("vec![{it}]")));
            values
        }
        ("Cow", _) => strings(&["Default::default()", "\"xyzzy\".into()"]),
        (name @ ("Arc" | "Box" | "Cell" | "Mutex" | "Rc" | "RefCell"), [inner]) => {
            each(inner, |it| format!("{name}::new({it})"))
        }
        _ => strings(&["Default::default()"]),
    }
}

fn reference(of: &TypeReference) -> Vec<String> {
    match of.elem.as_ref() {
        Type::Path(it) if it.path.is_ident("str") => strings(&["\"\"", "\"xyzzy\""]),
        Type::Slice(it) => {
            let mut values = strings(&["Vec::leak(Vec::new())"]);
            values.extend(each(&it.elem, |it| format!("Vec::leak(vec![{it}])")));
            values
        }
        it => each(it, |it| format!("Box::leak(Box::new({it}))")),
    }
}

fn each(of: &Type, wrap: impl FnMut(String) -> String) -> Vec<String> {
    values(of).into_iter().map(wrap).collect()
}

fn arguments(of: &PathArguments) -> Vec<&Type> {
    let PathArguments::AngleBracketed(of) = of else {
        return Vec::new();
    };
    let types = of.args.iter().filter_map(|it| match it {
        GenericArgument::Type(it) => Some(it),
        _ => None,
    });
    types.collect()
}

fn strings(of: &[&str]) -> Vec<String> {
    of.iter().map(|&it| it.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(of: &str, expected: &[&str]) {
        let of: ReturnType = syn::parse_str(of).unwrap();
        assert_eq!(results(&of), expected);
    }

    #[test]
    fn values_follow_the_type() {
        check("", &["()"]);
        check(
            "-> Option<&str>",
            &["None", "Some(\"\")", "Some(\"xyzzy\")"],
        );
        check("-> io::Result<()>", &["Ok(())"]);
        check(
            "-> (bool, u8)",
            &["(true,0,)", "(true,1,)", "(false,0,)", "(false,1,)"],
        );
        check("-> Vec<Event>", &["vec![]", "vec![Default::default()]"]);
        check("-> &mut T", &["Box::leak(Box::new(Default::default()))"]);
        check("-> impl Future", &[]);
    }
}
