//! Puts the mutants of a file behind switches, so that one build has them all.
//!
//! Only text is inserted. A mutant's code has the original operands, because no two mutants are ever on at once.

use std::ops::Range;

use super::list::{MutationSite, Site};

/// Where a mutant is, in the text that has the switches.
#[derive(Debug, PartialEq)]
pub(super) struct Span {
    pub(super) bytes: Range<usize>,
    /// Which mutants go when the compiler refuses these bytes.
    pub(super) ids: Vec<usize>,
    /// Whether the bytes are those of one mutant alone, and not of the code around some.
    pub(super) is_mutant: bool,
}

/// The path of the function that says whether a mutant is on.
const ON: &str = "::model::mutants::on";

/// The file with a switch for each mutant of `sites`, which have the ids from `first` on; those that are not
/// `kept` are left out.
pub(super) fn instrument(
    text: &str,
    sites: &[Site],
    first: usize,
    kept: impl Fn(usize) -> bool,
) -> (String, Vec<Span>) {
    let mut insertions = Vec::new();
    let mut next = first;
    for (n, site) in sites.iter().enumerate() {
        let ids: Vec<usize> = (next..next + site.mutants.len()).collect();
        next += site.mutants.len();
        let kept: Vec<(usize, &str)> = ids
            .into_iter()
            .zip(&site.mutants)
            .filter(|(id, _)| kept(*id))
            .map(|(id, it)| (id, it.code.as_str()))
            .collect();
        if !kept.is_empty() {
            insert(n, &site.place, &kept, &mut insertions);
        }
    }
    // What ends comes before what begins; what is around begins first and ends last.
    insertions.sort_by_key(|it| {
        (
            it.at,
            it.begins,
            if it.begins { it.n } else { usize::MAX - it.n },
        )
    });
    join(text, &insertions)
}

struct Insertion {
    at: usize,
    begins: bool,
    /// The number of its site; one around others has a lower number.
    n: usize,
    ids: Vec<usize>,
    parts: Vec<InsertedText>,
}

enum InsertedText {
    Around(String),
    Mutant(usize, String),
}

fn insert(n: usize, place: &MutationSite, kept: &[(usize, &str)], into: &mut Vec<Insertion>) {
    let ids: Vec<usize> = kept.iter().map(|it| it.0).collect();
    let mut begin = Vec::new();
    let (range, end) = match place {
        MutationSite::Expression(range) => {
            begin.push(InsertedText::Around("(".into()));
            for (id, code) in kept {
                begin.push(InsertedText::Around(format!("if {ON}({id}) {{ ")));
                begin.push(InsertedText::Mutant(*id, (*code).to_owned()));
                begin.push(InsertedText::Around(" } else ".into()));
            }
            begin.push(InsertedText::Around("{ ".into()));
            (range.clone(), " })")
        }
        MutationSite::Body(range) => {
            for (id, code) in kept {
                begin.push(InsertedText::Around(format!(" if {ON}({id}) {{ ")));
                begin.push(InsertedText::Mutant(*id, (*code).to_owned()));
                begin.push(InsertedText::Around(" }".into()));
            }
            (range.clone(), "")
        }
        MutationSite::Arm(arrow) => {
            for (id, _) in kept {
                begin.push(InsertedText::Mutant(*id, format!("if !{ON}({id}) ")));
            }
            (*arrow..*arrow, "")
        }
    };
    into.push(Insertion {
        at: range.start,
        begins: true,
        n,
        ids: ids.clone(),
        parts: begin,
    });
    if range.end > range.start {
        into.push(Insertion {
            at: range.end,
            begins: false,
            n,
            ids,
            parts: vec![InsertedText::Around(end.into())],
        });
    }
}

fn join(text: &str, insertions: &[Insertion]) -> (String, Vec<Span>) {
    let (mut out, mut spans, mut done) = (String::new(), Vec::new(), 0);
    let mut open: Vec<(usize, usize)> = Vec::new();
    for it in insertions {
        out.push_str(&text[done..it.at]);
        done = it.at;
        if it.begins {
            open.push((it.n, out.len()));
        }
        for part in &it.parts {
            match part {
                InsertedText::Around(text) => out.push_str(text),
                InsertedText::Mutant(id, code) => {
                    let start = out.len();
                    out.push_str(code);
                    spans.push(Span {
                        bytes: start..out.len(),
                        ids: vec![*id],
                        is_mutant: true,
                    });
                }
            }
        }
        if !it.begins
            && let Some(begun) = open.iter().position(|(n, _)| *n == it.n)
        {
            spans.push(Span {
                bytes: open.remove(begun).1..out.len(),
                ids: it.ids.clone(),
                is_mutant: false,
            });
        }
    }
    out.push_str(&text[done..]);
    (out, spans)
}

#[cfg(test)]
mod tests {
    use super::{super::list::find, *};

    #[test]
    fn every_mutant_has_a_switch() {
        let text = "fn f(a: bool) { match a { x if !x == a => 1, true => 2, _ => 3 }; }";
        let found = find(text).unwrap();
        let (out, spans) = instrument(text, &found.sites, 1, |it| it != 3);
        let expected = "fn f(a: bool) { if ::model::mutants::on(1) { return (); } match a { \
            x if (if ::model::mutants::on(2) { true } else { \
            (if ::model::mutants::on(5) { (!x) != (a) } else { \
            (if ::model::mutants::on(6) { x } else { !x }) == a }) }) => 1, \
            true if !::model::mutants::on(4) => 2, _ => 3 }; }";
        assert_eq!(out, expected);
        let mutants: Vec<(usize, &str)> = spans
            .iter()
            .filter(|it| it.is_mutant)
            .map(|it| (it.ids[0], &out[it.bytes.clone()]))
            .collect();
        let expected = [
            (1, "return ();"),
            (2, "true"),
            (5, "(!x) != (a)"),
            (6, "x"),
            (4, "if !::model::mutants::on(4) "),
        ];
        assert_eq!(mutants, expected);
    }
}
