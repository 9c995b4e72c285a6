//! How much of a tool's output clients want to see.

use std::str::FromStr;

use crate::error::ApiError;

/// How much of a tool's output a client of `thread` wants, in bytes; none is all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MaxOutput(pub(crate) Option<usize>);

impl MaxOutput {
    const LEAST: usize = 1 << 10;
    const MOST: usize = 16 << 20;
}

impl FromStr for MaxOutput {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Self, ApiError> {
        if text == "full" {
            return Ok(Self(None));
        }
        let bytes: usize = text
            .parse()
            .map_err(|_| ApiError::bad("`output` is a number of bytes, or `full`"))?;
        // Rounded, so that clients with similar limits share a rendering.
        let bytes = bytes.clamp(Self::LEAST, Self::MOST).next_power_of_two();
        Ok(Self(Some(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_for_more_output_is_a_number_or_all_of_it() {
        let wish = |text: &str| text.parse::<MaxOutput>().ok().map(|it| it.0);
        assert_eq!(wish("full"), Some(None));
        assert_eq!(wish("8192"), Some(Some(8192)));
        assert_eq!(wish("10000"), Some(Some(16384)));
        assert_eq!(wish("0"), Some(Some(1024)));
        assert_eq!(wish("99999999999"), Some(Some(16 << 20)));
        for text in ["", "all", "-1", "8k"] {
            assert_eq!(wish(text), None, "{text}");
        }
    }
}
