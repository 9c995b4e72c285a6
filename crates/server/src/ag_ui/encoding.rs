//! How events reach a client: as server-sent events, or in protobuf when it says that it takes it.

use axum::http::{HeaderMap, header};
use formats::ag_ui::{PROTO_TYPE, proto};
use formats::registry::StreamKind;
use hub::Cursor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Sse,
    Proto,
}

impl Encoding {
    /// Protobuf only for clients that name it: most send `*/*`.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(header::ACCEPT).iter();
        let mut kinds = accepted
            .filter_map(|it| it.to_str().ok())
            .flat_map(|it| it.split(','));
        let is_proto = |it: &str| it.split(';').next().unwrap_or_default().trim() == PROTO_TYPE;
        match kinds.any(is_proto) {
            true => Self::Proto,
            false => Self::Sse,
        }
    }

    /// Puts the events of `bytes`, which are those of event `seq`, behind what the client has.
    pub(super) fn put(
        self,
        bytes: &[u8],
        seq: Option<u64>,
        after: Option<Cursor>,
        out: &mut Vec<u8>,
    ) {
        let all = StreamKind::Events.frames(bytes);
        for (n, frame) in all.iter().enumerate() {
            let cursor = seq.map(|seq| (seq, Cursor::behind(seq, n + 1, all.len())));
            // An event may become several frames, and a connection may break between two of them.
            if let (Some((seq, _)), Some(after)) = (cursor, after)
                && (seq <= after.seq || (seq == after.seq + 1 && n < after.n_known))
            {
                continue;
            }
            match self {
                Self::Sse => {
                    if let Some((_, cursor)) = cursor {
                        out.extend_from_slice(format!("id: {cursor}\n").as_bytes());
                    }
                    out.extend_from_slice(b"data: ");
                    out.extend_from_slice(frame);
                    out.extend_from_slice(b"\n\n");
                }
                // What has no form in protobuf is of a profile that has none.
                Self::Proto => {
                    proto::encode(frame, out);
                }
            }
        }
    }

    /// An empty message, so that proxies do not close the connection as idle.
    pub(super) fn keep_alive(self) -> &'static [u8] {
        match self {
            Self::Sse => b":\n\n",
            // Protobuf has no comments that clients would skip.
            Self::Proto => b"",
        }
    }
}
