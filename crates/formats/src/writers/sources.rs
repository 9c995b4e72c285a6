//! What an answer refers to, as a short list: citations come one by one, often the same source many times.

use model::{Part, Raw};

use crate::wire::lenient::Any;
use crate::wire::scanner;

/// A page or a file that an answer refers to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceLink {
    pub(crate) title: Option<String>,
    /// Its address, or the name of a file.
    pub(crate) place: String,
}

object! {
    Citation {
        kind: Any<'a> = "type",
        title: Any<'a> = "title",
        url: Any<'a> = "url",
        filename: Any<'a> = "filename",
        file_id: Any<'a> = "file_id",
    }
}

/// The sources among the parts of a message, each once.
pub(crate) fn sources(parts: &[Part<'_>]) -> Vec<SourceLink> {
    let mut sources: Vec<SourceLink> = Vec::new();
    for part in parts {
        if let Part::Other(raw) = part
            && let Some(source) = source(raw)
            && !sources.iter().any(|it| it.place == source.place)
        {
            sources.push(source);
        }
    }
    sources
}

/// The source that a citation names; nothing for any other part.
pub(crate) fn source(raw: &Raw<'_>) -> Option<SourceLink> {
    let citation: Citation<'_> = scanner::from_str(raw.get()).ok()?;
    let place = match &*citation.kind.str()? {
        "url_citation" => citation.url.str(),
        "file_citation" | "container_file_citation" => {
            citation.filename.str().or(citation.file_id.str())
        }
        _ => None,
    };
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let place = one_line(&place?);
    let title = citation.title.str().map(|it| one_line(&it));
    let title = title.filter(|it| !it.is_empty() && *it != place);
    (!place.is_empty()).then_some(SourceLink { title, place })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_once_and_nothing_else() {
        let parts = [
            r#"{"type":"url_citation","url":"https://a.b/","title":"A\n b"}"#,
            r#"{"type":"url_citation","url":"https://a.b/","start_index":3}"#,
            r#"{"type":"file_citation","file_id":"f1","filename":"ai.pdf"}"#,
            r#"{"type":"file_citation","file_id":"f2"}"#,
            r#"{"type":"url_citation"}"#,
            r#"{"type":"audio","url":"x"}"#,
            "[]",
        ];
        let parts = parts.map(|it| Part::Other(serde_json::from_str(it).unwrap()));
        let found = sources(&parts);
        let found: Vec<_> = (found.iter())
            .map(|it| (it.title.as_deref(), &*it.place))
            .collect();
        let expected = [
            (Some("A b"), "https://a.b/"),
            (None, "ai.pdf"),
            (None, "f2"),
        ];
        assert_eq!(found, expected);
    }
}
