//! Keeps a status message small enough for the HTTP/2 header it travels in.
//!
//! What matters most survives: the fixed words, then the start of what a
//! function reported as results, then the end of what it wrote on stderr.

use http::{HeaderMap, header::USER_AGENT};

/// How much room a caller has for a status in the headers of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// For the message, encoded.
    pub(crate) message: usize,
    /// For the message and the details beside it, both encoded.
    pub(crate) total: usize,
}

impl Room {
    /// What all but a few clients take. The rest of 32 KiB is left to whoever puts a prefix before the message
    /// on its way; the details have the message in them once more.
    pub const USUAL: Self = Self { message: 28 * 1024, total: 72 * 1024 };
    /// The clients made of gRPC's C core, such as Python's, refuse headers of more than 8 KiB in all.
    pub const SMALL: Self = Self { message: 6 * 1024, total: 7 * 1024 };

    /// The room of the caller with these headers.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let is_c_core = |agent: &[u8]| agent.windows(C_CORE.len()).any(|part| part == C_CORE);
        let agent = headers.get(USER_AGENT).map(http::HeaderValue::as_bytes);
        if agent.is_some_and(is_c_core) { Self::SMALL } else { Self::USUAL }
    }
}

/// What clients made of the C core name in their `user-agent`: `grpc-python/1.62.0 grpc-c/39.0.0 (linux; chttp2)`.
const C_CORE: &[u8] = b"grpc-c/";

/// Image references longer than this are shortened where they are shown.
const LONGEST_IMAGE: usize = 512;

/// A piece of a message, with what to do when there is no room for all of it.
#[derive(Debug)]
pub(crate) enum Piece<'a> {
    /// Short words of our own, never cut.
    Fixed(String),
    /// Text whose start matters: its end is cut.
    Start(&'a str),
    /// Text whose end matters: its start is cut.
    End(&'a str),
    /// A message of the same kind, composed by another: a part before its end is cut.
    Middle(&'a str),
}

/// Joins the pieces to a message of at most `budget` bytes once encoded.
pub(crate) fn compose(pieces: &[Piece<'_>], budget: usize) -> String {
    let fixed: usize =
        pieces.iter().map(|p| if let Piece::Fixed(text) = p { encoded_len(text) } else { 0 }).sum();
    let ends: usize =
        pieces.iter().map(|p| if let Piece::End(text) = p { encoded_len(text) } else { 0 }).sum();
    let mut room = budget.saturating_sub(fixed);
    // A quarter is kept for the end of stderr, whatever the results take.
    let reserved = ends.min(room / 4);
    let mut message = String::new();
    for piece in pieces {
        match piece {
            Piece::Fixed(text) => message.push_str(text),
            Piece::Start(text) => {
                let shown = cut_end(text, room.saturating_sub(reserved));
                room = room.saturating_sub(encoded_len(&shown));
                message.push_str(&shown);
            }
            Piece::End(text) => {
                let shown = cut_start(text, room);
                room = room.saturating_sub(encoded_len(&shown));
                message.push_str(&shown);
            }
            Piece::Middle(text) => {
                let shown = cut_middle(text, room.saturating_sub(reserved));
                room = room.saturating_sub(encoded_len(&shown));
                message.push_str(&shown);
            }
        }
    }
    message
}

/// The image as shown to people: whole unless absurdly long.
pub(crate) fn shown_image(image: &str) -> String {
    if image.len() <= LONGEST_IMAGE {
        return image.to_owned();
    }
    let end = image.floor_char_boundary(LONGEST_IMAGE);
    format!("{}… ({} bytes)", image.get(..end).unwrap_or_default(), image.len())
}

fn cut_end(text: &str, room: usize) -> String {
    if encoded_len(text) <= room {
        return text.to_owned();
    }
    let note = |cut: usize| format!("\n[{cut} more bytes cut]");
    let room = room.saturating_sub(encoded_len(&note(text.len())));
    let mut used = 0;
    let kept = text
        .char_indices()
        .find(|(_, c)| {
            used += encoded_char_len(*c);
            used > room
        })
        .map_or(text.len(), |(at, _)| at);
    let (shown, cut) = text.split_at(kept);
    format!("{shown}{}", note(cut.len()))
}

fn cut_start(text: &str, room: usize) -> String {
    if encoded_len(text) <= room {
        return text.to_owned();
    }
    let note = |cut: usize| format!("[{cut} bytes cut] …");
    let room = room.saturating_sub(encoded_len(&note(text.len())));
    let mut used = 0;
    let kept = text
        .char_indices()
        .rev()
        .find(|(_, c)| {
            used += encoded_char_len(*c);
            used > room
        })
        .map_or(0, |(at, c)| at + c.len_utf8());
    let (cut, shown) = text.split_at(kept);
    format!("{}{shown}", note(cut.len()))
}

/// Keeps the start and, in a quarter of the room, the end.
fn cut_middle(text: &str, room: usize) -> String {
    if encoded_len(text) <= room {
        return text.to_owned();
    }
    let mut used = 0;
    let end = text.char_indices().rev().find(|(_, c)| {
        used += encoded_char_len(*c);
        used > room / 4
    });
    let (start, end) = text.split_at(end.map_or(0, |(at, c)| at + c.len_utf8()));
    let start = cut_end(start, room - room / 4);
    format!("{start}{end}")
}

/// The length of a text once percent-encoded for the `grpc-message` header.
pub(crate) fn encoded_len(text: &str) -> usize {
    text.chars().map(encoded_char_len).sum()
}

fn encoded_char_len(c: char) -> usize {
    let plain = c.is_ascii_graphic() && !matches!(c, '"' | '#' | '%' | '<' | '>' | '`' | '?' | '{' | '}');
    if plain { 1 } else { 3 * c.len_utf8() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_are_left_alone() {
        let pieces = [Piece::Fixed("a: ".into()), Piece::Start("results"), Piece::End("stderr")];
        assert_eq!(compose(&pieces, Room::USUAL.message), "a: resultsstderr");
    }

    #[test]
    fn results_keep_their_start_and_stderr_its_end() {
        let results = format!("first result {}", "r".repeat(100_000));
        let stderr = format!("{} last words", "e ".repeat(100_000));
        let pieces = [
            Piece::Fixed("failed: ".into()),
            Piece::Start(&results),
            Piece::Fixed(" and ".into()),
            Piece::End(&stderr),
        ];
        let message = compose(&pieces, Room::USUAL.message);
        assert!(encoded_len(&message) <= Room::USUAL.message, "{}", encoded_len(&message));
        assert!(
            encoded_len(&message) > Room::USUAL.message - 1024,
            "the room is used: {}",
            encoded_len(&message)
        );
        assert!(message.starts_with("failed: first result rrr"));
        assert!(message.contains("more bytes cut] and ["));
        assert!(message.ends_with("e  last words"));
    }

    #[test]
    fn wide_characters_count_as_they_are_encoded() {
        let text = "\u{1F600}".repeat(50_000);
        for piece in [Piece::Start(&text), Piece::End(&text), Piece::Middle(&text)] {
            assert!(encoded_len(&compose(&[piece], Room::USUAL.message)) <= Room::USUAL.message);
        }
    }

    #[test]
    fn a_message_of_another_keeps_both_its_ends() {
        let text = format!("the results {} the last words", "r".repeat(100_000));
        let message = compose(&[Piece::Fixed("the pod: ".into()), Piece::Middle(&text)], Room::SMALL.message);
        assert!(encoded_len(&message) <= Room::SMALL.message, "{}", encoded_len(&message));
        assert!(encoded_len(&message) > Room::SMALL.message - 256, "{}", encoded_len(&message));
        assert!(message.starts_with("the pod: the results rrr") && message.ends_with("rrr the last words"));
        assert!(message.contains("more bytes cut]"), "{message}");
    }

    #[test]
    fn the_room_is_that_of_the_caller() {
        let room = |agent: &'static str| {
            Room::of(&HeaderMap::from_iter([(USER_AGENT, http::HeaderValue::from_static(agent))]))
        };
        for agent in [
            "grpc-python/1.62.0 grpc-c/39.0.0 (linux; chttp2)",
            "grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)",
        ] {
            assert_eq!(room(agent), Room::SMALL, "{agent}");
        }
        for agent in ["grpc-go/1.71.0", "tonic/0.14.9", "grpc-csharp", ""] {
            assert_eq!(room(agent), Room::USUAL, "{agent}");
        }
        assert_eq!(Room::of(&HeaderMap::new()), Room::USUAL);
    }

    #[test]
    fn a_tiny_budget_cuts_everything_but_the_fixed_words() {
        let pieces = [Piece::Fixed("x".into()), Piece::Start("abcdef"), Piece::End("ghijkl")];
        let message = compose(&pieces, 2);
        assert!(message.starts_with('x') && message.contains("cut]"), "{message}");
    }

    #[test]
    fn long_images_are_shortened_at_a_character() {
        assert_eq!(shown_image("a/b:1"), "a/b:1");
        let shown = shown_image(&"ä".repeat(1_000_000));
        assert!(shown.len() < 600 && shown.ends_with("(2000000 bytes)"), "{shown}");
    }
}
