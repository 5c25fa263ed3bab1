//! The tags of a repository, page after page.

use reqwest::Url;
use reqwest::header::{HeaderMap, LINK};
use serde::Deserialize;

use super::fetch::{Session, Wanted};
use crate::error::{Trouble, clean};

const TAGS_PER_PAGE: usize = 1000;
const LARGEST_PAGE: usize = 4 * 1024 * 1024;
const MOST_TAGS: usize = 50_000;
/// Registries may choose pages smaller than asked for.
const MOST_PAGES: usize = 500;

#[derive(Deserialize)]
struct Page {
    /// `null` where there are none.
    tags: Option<Vec<String>>,
}

/// All tags, or an error: the highest of some of the tags would be the wrong one.
pub(super) async fn list(session: &Session<'_>) -> Result<Vec<String>, Trouble> {
    let mut tags: Vec<String> = Vec::new();
    let mut query = format!("n={TAGS_PER_PAGE}");
    for _ in 0..MOST_PAGES {
        let fetched = session
            .get(&Wanted {
                path: &format!("tags/list?{query}"),
                accept: "application/json",
                limit: LARGEST_PAGE,
                what: "list of tags",
                is_named_by_caller: true,
            })
            .await?;
        let page: Page = serde_json::from_slice(&fetched.body).map_err(|error| {
            let cause = clean(&error.to_string()).unwrap_or_default();
            Trouble::invalid(
                format!("the list of tags of {} is not one: {cause}", session.host()),
                "check that it is a registry of container images",
            )
        })?;
        // What is no tag can neither be asked for nor be run.
        tags.extend(
            page.tags.unwrap_or_default().into_iter().filter(|tag| session.image.with_tag(tag).is_ok()),
        );
        if tags.len() > MOST_TAGS {
            break;
        }
        match next_page(&fetched.headers) {
            Some(next) if next != query => query = next,
            _ => return Ok(tags),
        }
    }
    Err(Trouble::invalid(
        format!(
            "{} has more than {MOST_TAGS} tags, or more than {MOST_PAGES} pages of them",
            session.repository()
        ),
        "name the tag instead of a range of versions",
    ))
}

/// The query of the next page's address. Only that: the page is of the same list, wherever the address points.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let base = Url::parse("https://registry.invalid/").ok()?;
    headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok()).find_map(|link| {
        let (target, parameters) = link.trim_start().strip_prefix('<')?.split_once('>')?;
        let is_next = parameters.split(';').any(|parameter| {
            let compact: String =
                parameter.chars().filter(|character| !matches!(character, ' ' | '"')).collect();
            compact.eq_ignore_ascii_case("rel=next")
        });
        base.join(target).ok().filter(|_| is_next)?.query().map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn the_next_page_is_found() {
        for (link, expected) in [
            ("</v2/a/tags/list?last=v1&n=2>; rel=\"next\"", Some("last=v1&n=2")),
            ("<https://elsewhere/v2/a/tags/list?last=x%20y>;rel=next", Some("last=x%20y")),
            ("<?last=1>; foo=bar; rel=next", Some("last=1")),
            ("</v2/a/tags/list?last=v1>; rel=\"prev\"", None),
            ("</v2/a/tags/list>; rel=\"next\"", None),
            ("garbage", None),
            ("<", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(LINK, HeaderValue::from_str(link).unwrap());
            assert_eq!(next_page(&headers).as_deref(), expected, "{link}");
        }
    }
}
