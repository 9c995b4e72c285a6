//! Finds the places of a source file where one small error can be put in.
//!
//! The errors are those of `cargo mutants`: another operator, no `!` or `-`, a function that returns at once,
//! a match without one of its arms, a guard that is always or never true, a field left to `..`.
//! Left out are tests, `Debug` and `Display`, code for other systems, and what the compiler computes (constants,
//! `const fn`, patterns), which no switch can change at run time. Macros are opaque, as they are to `cargo mutants`.

use std::ops::Range;

use proc_macro2::Span;
use quote::ToTokens;
use syn::{
    Arm, Attribute, BinOp, Block, Expr, ExprBinary, ExprClosure, ExprMatch, ExprRepeat, ExprStruct,
    ExprUnary, ImplItemFn, Item, ItemFn, ItemImpl, ItemTrait, Pat, Signature, TraitItemFn, Type,
    UnOp,
    spanned::Spanned,
    visit::{self, Visit},
};

use super::values;

/// One place in a file, and what may stand there instead.
#[derive(Debug, PartialEq)]
pub(super) struct Site {
    pub(super) place: MutationSite,
    /// Of the file, from 1.
    pub(super) line: usize,
    /// As in `Type::function`.
    pub(super) function: String,
    pub(super) mutants: Vec<Replacement>,
}

#[derive(Debug, PartialEq)]
pub(super) enum MutationSite {
    /// An expression, by its bytes.
    Expression(Range<usize>),
    /// The body of a function; its mutants return.
    Body(Range<usize>),
    /// The arm whose arrow is at this byte; its one mutant does not match.
    Arm(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Replacement {
    /// For people.
    pub(super) what: String,
    pub(super) code: String,
}

/// What a file has: its sites, and the modules of its tests, which have files of their own.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) sites: Vec<Site>,
    pub(super) test_modules: Vec<String>,
}

pub(super) fn find(text: &str) -> syn::Result<Found> {
    let mut finder = Finder {
        text,
        found: Found::default(),
        names: Vec::new(),
    };
    finder.visit_file(&syn::parse_file(text)?);
    Ok(finder.found)
}

struct Finder<'a> {
    text: &'a str,
    found: Found,
    /// The type and the functions around.
    names: Vec<String>,
}

impl Finder<'_> {
    fn add(&mut self, at: Span, place: MutationSite, mutants: Vec<Replacement>) {
        if !mutants.is_empty() {
            self.found.sites.push(Site {
                place,
                line: at.start().line,
                function: self.names.join("::"),
                mutants,
            });
        }
    }

    fn source(&self, of: &impl Spanned) -> &str {
        &self.text[of.span().byte_range()]
    }

    fn function(&mut self, signature: &Signature, block: &Block, walk: impl FnOnce(&mut Self)) {
        if signature.constness.is_some() {
            return;
        }
        self.names.push(signature.ident.to_string());
        let body = block.brace_token.span.open().byte_range().end
            ..block.brace_token.span.close().byte_range().start;
        let old = self.text[body.clone()].trim().to_owned();
        // `Default::default` is what most values are made with.
        let is_default = signature.ident == "default";
        if !old.is_empty() && !is_default {
            let values = values::results(&signature.output);
            let mutants = values.into_iter().filter(|it| *it != old);
            let mutants = mutants
                .map(|it| Replacement {
                    what: format!("the body is `{it}`"),
                    code: format!("return {it};"),
                })
                .collect();
            self.add(signature.ident.span(), MutationSite::Body(body), mutants);
        }
        walk(self);
        self.names.pop();
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, it: &'ast Item) {
        let attributes = match it {
            Item::Fn(it) => &it.attrs,
            Item::Impl(it) => &it.attrs,
            Item::Mod(it) => &it.attrs,
            Item::Trait(it) => &it.attrs,
            // The rest is types, constants and macros.
            _ => return,
        };
        match (is_left_out(attributes), it) {
            (true, Item::Mod(it)) if it.content.is_none() => {
                self.found.test_modules.push(it.ident.to_string());
            }
            (true, _) => (),
            (false, it) => visit::visit_item(self, it),
        }
    }

    fn visit_item_impl(&mut self, it: &'ast ItemImpl) {
        let of = it
            .trait_
            .as_ref()
            .and_then(|(_, path, _)| path.segments.last());
        if of.is_some_and(|it| it.ident == "Debug" || it.ident == "Display") {
            return;
        }
        let name = match it.self_ty.as_ref() {
            Type::Path(it) => it.path.segments.last().map(|it| it.ident.to_string()),
            other => Some(other.to_token_stream().to_string()),
        };
        self.names.push(name.unwrap_or_default());
        visit::visit_item_impl(self, it);
        self.names.pop();
    }

    fn visit_item_trait(&mut self, it: &'ast ItemTrait) {
        self.names.push(it.ident.to_string());
        visit::visit_item_trait(self, it);
        self.names.pop();
    }

    fn visit_item_fn(&mut self, it: &'ast ItemFn) {
        self.function(&it.sig, &it.block, |this| this.visit_block(&it.block));
    }

    fn visit_impl_item_fn(&mut self, it: &'ast ImplItemFn) {
        if !is_left_out(&it.attrs) {
            self.function(&it.sig, &it.block, |this| this.visit_block(&it.block));
        }
    }

    fn visit_trait_item_fn(&mut self, it: &'ast TraitItemFn) {
        if let Some(block) = &it.default {
            self.function(&it.sig, block, |this| this.visit_block(block));
        }
    }

    // Neither types, patterns and attributes nor constants hold code that runs.
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_expr_repeat(&mut self, it: &'ast ExprRepeat) {
        self.visit_expr(&it.expr);
    }

    fn visit_expr_closure(&mut self, it: &'ast ExprClosure) {
        self.visit_expr(&it.body);
    }

    fn visit_expr_binary(&mut self, it: &'ast ExprBinary) {
        // A condition with `let` is no expression that could stand in parentheses.
        if !has_let(&it.left) && !has_let(&it.right) {
            let old = it.op.to_token_stream().to_string();
            let (left, right) = (self.source(&it.left), self.source(&it.right));
            let mutants = operators(&it.op)
                .iter()
                .map(|new| Replacement {
                    what: format!("`{old}` is `{new}`"),
                    code: format!("({left}) {new} ({right})"),
                })
                .collect();
            self.add(
                it.op.span(),
                MutationSite::Expression(it.span().byte_range()),
                mutants,
            );
        }
        visit::visit_expr_binary(self, it);
    }

    fn visit_expr_unary(&mut self, it: &'ast ExprUnary) {
        let mutants = match it.op {
            UnOp::Not(_) | UnOp::Neg(_) => vec![Replacement {
                what: format!("no `{}`", it.op.to_token_stream()),
                code: self.source(&it.expr).to_owned(),
            }],
            _ => Vec::new(),
        };
        self.add(
            it.op.span(),
            MutationSite::Expression(it.span().byte_range()),
            mutants,
        );
        visit::visit_expr_unary(self, it);
    }

    fn visit_expr_match(&mut self, it: &'ast ExprMatch) {
        let is_wild = |it: &Arm| matches!(it.pat, Pat::Wild(_)) && it.guard.is_none();
        let has_rest = it.arms.iter().any(is_wild);
        for arm in &it.arms {
            match &arm.guard {
                Some((_, guard)) if !has_let(guard) => {
                    let old = self.source(guard).to_owned();
                    let mutants = ["true", "false"].map(|new| Replacement {
                        what: format!("the guard `{}` is `{new}`", one_line(&old)),
                        code: new.to_owned(),
                    });
                    let place = MutationSite::Expression(guard.span().byte_range());
                    self.add(guard.span(), place, mutants.into());
                }
                None if has_rest && !is_wild(arm) => {
                    let what = format!("no arm `{}`", one_line(self.source(&arm.pat)));
                    let arrow = arm.fat_arrow_token.span().byte_range().start;
                    let code = String::new();
                    self.add(
                        arm.pat.span(),
                        MutationSite::Arm(arrow),
                        vec![Replacement { what, code }],
                    );
                }
                _ => (),
            }
        }
        visit::visit_expr_match(self, it);
    }

    fn visit_expr_struct(&mut self, it: &'ast ExprStruct) {
        if let Some(rest) = &it.rest {
            let path = self.source(&it.path);
            let without = |gone: usize| {
                let fields = it.fields.iter().enumerate().filter(|(n, _)| *n != gone);
                let fields: String = fields
                    .map(|(_, it)| format!("{}, ", self.source(it)))
                    .collect();
                format!("{path} {{ {fields}..{} }}", self.source(rest))
            };
            let mutants = it.fields.iter().enumerate().map(|(n, field)| Replacement {
                what: format!("`{path}` without `{}`", field.member.to_token_stream()),
                code: without(n),
            });
            let mutants = mutants.collect();
            self.add(
                it.span(),
                MutationSite::Expression(it.span().byte_range()),
                mutants,
            );
        }
        visit::visit_expr_struct(self, it);
    }
}

/// Tests, and what this system does not build.
fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        let text = it.meta.to_token_stream().to_string().replace(' ', "");
        let is_test = it
            .path()
            .segments
            .last()
            .is_some_and(|it| it.ident == "test");
        is_test || text == "cfg(test)" || text == "cfg(not(unix))"
    })
}

fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(it) if matches!(it.op, BinOp::And(_)) => {
            has_let(&it.left) || has_let(&it.right)
        }
        _ => false,
    }
}

fn operators(of: &BinOp) -> &'static [&'static str] {
    match of {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Lt(_) => &["==", ">", "<="],
        BinOp::Gt(_) => &["==", "<", ">="],
        BinOp::Le(_) => &[">"],
        BinOp::Ge(_) => &["<"],
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["%", "*"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitOr(_) => &["&", "^"],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) => &["+=", "/="],
        BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::DivAssign(_) => &["%=", "*="],
        BinOp::RemAssign(_) => &["/=", "+="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        BinOp::BitAndAssign(_) => &["|=", "^="],
        BinOp::BitOrAssign(_) => &["&=", "^="],
        BinOp::BitXorAssign(_) => &["|=", "&="],
        _ => &[],
    }
}

fn one_line(code: &str) -> String {
    code.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let sites = find(text).unwrap().sites;
        let found: Vec<String> = sites
            .iter()
            .flat_map(|site| {
                let at = format!("{}:{}", site.function, site.line);
                site.mutants
                    .iter()
                    .map(move |it| format!("{at}: {}: {}", it.what, it.code))
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn operators_functions_arms_and_fields_have_mutants() {
        check(
            "impl A { fn f(&self) -> bool { !self.x && B + 1 <= 2 } }",
            &[
                "A::f:1: the body is `true`: return true;",
                "A::f:1: the body is `false`: return false;",
                "A::f:1: `&&` is `||`: (!self.x) || (B + 1 <= 2)",
                "A::f:1: no `!`: self.x",
                "A::f:1: `<=` is `>`: (B + 1) > (2)",
                "A::f:1: `+` is `-`: (B) - (1)",
                "A::f:1: `+` is `*`: (B) * (1)",
            ],
        );
        check(
            "fn f() -> impl T { match x { 1 => 2, n if n\n > 3 => 4, _ => 5 } }",
            &[
                "f:1: no arm `1`: ",
                "f:1: the guard `n > 3` is `true`: true",
                "f:1: the guard `n > 3` is `false`: false",
                "f:2: `>` is `==`: (n) == (3)",
                "f:2: `>` is `<`: (n) < (3)",
                "f:2: `>` is `>=`: (n) >= (3)",
            ],
        );
        check(
            "fn f() -> impl T { C { a: 1, b, ..D } }",
            &[
                "f:1: `C` without `a`: C { b, ..D }",
                "f:1: `C` without `b`: C { a: 1, ..D }",
            ],
        );
    }

    #[test]
    fn what_no_switch_can_change_is_left_out() {
        check("const A: u8 = 1 + 2; fn f() -> impl T { [0; 1 + 2] }", &[]);
        check("const fn f() -> u8 { 1 + 2 }", &[]);
        check(
            "fn f() -> impl T { if let 1 = x && y { 1 } else { 2 } }",
            &[],
        );
        check("#[cfg(test)] mod tests { fn f() {} }", &[]);
        check(
            "impl fmt::Debug for A { fn fmt(&self) -> bool { !x } }",
            &[],
        );
    }

    #[test]
    fn modules_of_tests_are_named() {
        let found = find("#[cfg(test)]\nmod tests;\nmod a;").unwrap();
        assert_eq!(found.test_modules, ["tests"]);
    }
}
