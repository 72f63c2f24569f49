//! Who may come in: whoever has a token that was printed here, once, and from then on a cookie.
//!
//! A cookie says until when it is good and for which port, and is signed by the store's key; nothing is kept of it here. A token is kept
//! as a hash, and gone when it was used.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::header::{COOKIE, HeaderMap};

use crate::cookie_key::{self, CookieKey};
use crate::limits;

/// Lets people in.
pub(crate) struct Login {
    key: CookieKey,
    port: u16,
    tokens: Mutex<VecDeque<blake3::Hash>>,
    wrong: Mutex<Bucket>,
}

/// What came of a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LoginOutcome {
    /// A cookie, as the header sets it.
    Cookie(String),
    /// It is not one that was printed, or it was used.
    Wrong,
    /// There were too many wrong ones.
    TooMany,
}

/// How many wrong tokens are still allowed.
struct Bucket {
    size: u32,
    left: u32,
    since: Instant,
}

impl Login {
    pub(crate) fn new(key: CookieKey, port: u16, wrong_tokens: u32) -> Self {
        let wrong = Bucket { size: wrong_tokens, left: wrong_tokens, since: Instant::now() };
        Self { key, port, tokens: Mutex::default(), wrong: Mutex::new(wrong) }
    }

    /// A new token, which can be used once.
    pub(crate) fn token(&self) -> String {
        let token = URL_SAFE_NO_PAD.encode(cookie_key::random());
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.push_back(blake3::hash(token.as_bytes()));
        if tokens.len() > limits::TOKENS {
            tokens.pop_front();
        }
        token
    }

    /// Exchanges a token for a cookie.
    pub(crate) fn exchange(&self, token: &str) -> LoginOutcome {
        // A right one is let in however many wrong ones somebody else tries.
        if self.spend(token) {
            return LoginOutcome::Cookie(self.cookie(now() + limits::COOKIE_LIFE));
        }
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if !wrong.allows(Instant::now()) {
            return LoginOutcome::TooMany;
        }
        wrong.left -= 1;
        LoginOutcome::Wrong
    }

    /// Uses a token up; tells whether it was good.
    pub(crate) fn spend(&self, token: &str) -> bool {
        let hash = blake3::hash(token.as_bytes());
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        // Hashes are compared in constant time.
        let found = tokens.iter().position(|known| *known == hash);
        found.and_then(|at| tokens.remove(at)).is_some()
    }

    fn cookie(&self, until: u64) -> String {
        let name = cookie_key::hex(&cookie_key::random()[..8]);
        let mark = self.sign(until, &name);
        let (port, life) = (self.port, limits::COOKIE_LIFE);
        format!("retake_{port}={until}.{name}.{mark}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict")
    }

    fn sign(&self, until: u64, name: &str) -> blake3::Hash {
        blake3::keyed_hash(&self.key, format!("retake web cookie 1\n{}\n{until}\n{name}", self.port).as_bytes())
    }

    /// Whether a request has a cookie of ours.
    pub(crate) fn is_known(&self, headers: &HeaderMap) -> bool {
        let wanted = format!("retake_{}", self.port);
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut values = lines
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == wanted);
        values.any(|(_, value)| self.is_ours(value))
    }

    fn is_ours(&self, value: &str) -> bool {
        let mut parts = value.splitn(3, '.');
        let (Some(until), Some(name), Some(mark)) = (parts.next(), parts.next(), parts.next()) else { return false };
        let (Ok(until), Ok(mark)) = (until.parse::<u64>(), blake3::Hash::from_hex(mark)) else { return false };
        mark == self.sign(until, name) && now() < until
    }
}

impl Bucket {
    /// Whether one more may be tried.
    fn allows(&mut self, now: Instant) -> bool {
        let pause = limits::WRONG_TOKEN_PAUSE;
        let due = now.saturating_duration_since(self.since).as_secs() / pause.as_secs();
        if let Ok(due @ 1..) = u32::try_from(due) {
            self.left = self.left.saturating_add(due).min(self.size);
            self.since += pause * due;
        }
        self.left > 0
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may")]
mod tests {
    use super::*;

    fn login(port: u16) -> Login {
        Login::new([7; 32], port, 3)
    }

    fn with(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, cookie.parse().unwrap());
        headers
    }

    fn sign_in(login: &Login) -> String {
        let LoginOutcome::Cookie(cookie) = login.exchange(&login.token()) else { panic!("a token is good once") };
        cookie.split(';').next().unwrap().to_owned()
    }

    #[test]
    fn a_token_is_good_once_and_its_cookie_for_the_next_server_on_the_port_too() {
        let first = login(8000);
        let token = first.token();
        let LoginOutcome::Cookie(set) = first.exchange(&token) else { panic!("it is good") };
        assert_eq!(first.exchange(&token), LoginOutcome::Wrong);
        assert!(set.ends_with("; HttpOnly; SameSite=Strict") && set.contains("; Path=/;"), "{set}");
        let cookie = set.split(';').next().unwrap();
        assert!(first.is_known(&with(cookie)) && login(8000).is_known(&with(&format!("a=b; {cookie}; c=d"))));
        assert!(!login(8001).is_known(&with(&cookie.replace("8000", "8001"))), "a cookie is for its port");
        assert!(!Login::new([8; 32], 8000, 3).is_known(&with(cookie)), "and of its store");
    }

    #[test]
    fn a_cookie_that_was_changed_or_is_old_is_none() {
        let login = login(8000);
        let cookie = sign_in(&login);
        let (name, value) = cookie.split_once('=').unwrap();
        let parts: Vec<&str> = value.split('.').collect();
        let later = format!("{name}={}.{}.{}", parts[0].parse::<u64>().unwrap() + 1, parts[1], parts[2]);
        let old = login.cookie(now() - 1);
        for bad in [&later, &old, &format!("{cookie}0"), &format!("{name}="), &format!("{name}=..")] {
            assert!(!login.is_known(&with(bad)), "{bad}");
        }
        assert!(!login.is_known(&HeaderMap::new()));
    }

    #[test]
    fn wrong_tokens_are_few_and_come_back_slowly() {
        let login = login(8000);
        let good = login.token();
        (0..3).for_each(|_| assert_eq!(login.exchange("guess"), LoginOutcome::Wrong));
        assert_eq!(login.exchange("guess"), LoginOutcome::TooMany);
        assert!(matches!(login.exchange(&good), LoginOutcome::Cookie(_)), "nobody is kept out by others");
        let mut bucket = Bucket { size: 3, left: 0, since: Instant::now() };
        let start = bucket.since;
        assert!(!bucket.allows(start + limits::WRONG_TOKEN_PAUSE / 2));
        assert!(bucket.allows(start + limits::WRONG_TOKEN_PAUSE * 2));
        assert_eq!(bucket.left, 2);
        assert!(bucket.allows(start + limits::WRONG_TOKEN_PAUSE * 1_000));
        assert_eq!(bucket.left, 3);
    }

    #[test]
    fn old_tokens_make_way_for_new_ones() {
        let login = login(8000);
        let first = login.token();
        let second = login.token();
        (0..limits::TOKENS - 1).for_each(|_| drop(login.token()));
        assert_eq!(login.exchange(&first), LoginOutcome::Wrong);
        assert!(matches!(login.exchange(&second), LoginOutcome::Cookie(_)));
    }
}
