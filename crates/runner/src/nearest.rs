//! The name that was probably meant: one rule for engines, formats, commands, flags, config keys and the fields
//! of requests.

/// Short names that begin alike may differ by more: `tekst` is two edits away from `text`.
const ALIKE: f64 = 0.82;

/// The offer that `name` is a misspelling of, if it is close to one. Neither case nor `_` and `-` count:
/// `working_dir` is as good as `workingDir`.
pub fn nearest<'a>(name: &str, offers: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |it: &str| it.replace(['_', '-'], "").to_lowercase();
    let name = plain(name);
    let distance = |offer: &&str| strsim::osa_distance(&name, &plain(offer));
    let is_close = |offer: &&str| {
        // One slip for every three letters: more would match unrelated short names.
        let is_near = distance(offer) <= offer.chars().count() / 3;
        is_near || strsim::jaro_winkler(&name, &plain(offer)) >= ALIKE
    };
    let close = offers.into_iter().filter(is_close);
    close.min_by_key(distance)
}

/// The hint for an unknown `name`: the offer that was probably meant, and `all` of them.
pub fn did_you_mean<'a>(
    name: &str,
    offers: impl IntoIterator<Item = &'a str>,
    all: &str,
) -> String {
    match nearest(name, offers) {
        Some(it) => format!("did you mean `{it}`? {all}"),
        None => all.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_guessed_and_others_are_not() {
        let offers = [
            "claude", "linkspan", "ag-ui", "acp", "text", "thread", "run", "markdown",
        ];
        let check = |name, meant| assert_eq!(nearest(name, offers), meant, "{name}");
        check("cluade", Some("claude"));
        check("Claude", Some("claude"));
        check("agui", Some("ag-ui"));
        check("linkspam", Some("linkspan"));
        check("acpp", Some("acp"));
        check("tekst", Some("text"));
        check("rn", Some("run"));
        check("mardkown", Some("markdown"));
        check("morse", None);
        check("boss", None);
        check("", None);
    }
}
