//! Keeps a status message small enough for the HTTP/2 header it travels in.
//!
//! What matters most survives: the fixed words, then the start of what a
//! function reported as results, then the end of what it wrote on stderr.

/// The largest encoded message we send. The contract allows 32 KiB; the rest
/// is left to whoever puts a prefix before the message on its way.
pub const BUDGET: usize = 28 * 1024;

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
        assert_eq!(compose(&pieces, BUDGET), "a: resultsstderr");
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
        let message = compose(&pieces, BUDGET);
        assert!(encoded_len(&message) <= BUDGET, "{}", encoded_len(&message));
        assert!(encoded_len(&message) > BUDGET - 1024, "the room is used: {}", encoded_len(&message));
        assert!(message.starts_with("failed: first result rrr"));
        assert!(message.contains("more bytes cut] and ["));
        assert!(message.ends_with("e  last words"));
    }

    #[test]
    fn wide_characters_count_as_they_are_encoded() {
        let text = "\u{1F600}".repeat(50_000);
        for piece in [Piece::Start(&text), Piece::End(&text)] {
            assert!(encoded_len(&compose(&[piece], BUDGET)) <= BUDGET);
        }
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
