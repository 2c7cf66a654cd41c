//! Durations as kubectl writes and reads them.

use std::time::Duration;

use anyhow::{Result, bail};
use jiff::{SignedDuration, Timestamp};

/// How long ago a time was, as in the AGE column of kubectl.
#[must_use]
pub fn age(now: Timestamp, then: Timestamp) -> String {
    duration(now.duration_since(then))
}

/// A duration with at most two units, the finer one only while it matters.
#[must_use]
pub fn duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |coarse: i64, unit: char, fine: i64, finer: char| match fine {
        0 => format!("{coarse}{unit}"),
        fine => format!("{coarse}{unit}{fine}{finer}"),
    };
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => two(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

/// A duration in the format of kubectl: `90s`, `10m`, `1h30m`, or a number of seconds.
///
/// # Errors
/// When it is none, or negative.
pub fn parse_duration(text: &str) -> Result<Duration> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let parsed = text.parse::<SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
    match parsed {
        Some(duration) => Ok(duration),
        None => bail!("{text:?} is not a duration: write it like 90s, 10m or 1h30m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_written_as_kubectl_does() {
        for (seconds, expected) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (185, "3m5s"),
            (601, "10m"),
            (10_800, "3h"),
            (11_400, "3h10m"),
            (90_000, "25h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
        ] {
            assert_eq!(duration(SignedDuration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn a_duration_is_read_as_in_kubectl() {
        let seconds = |text: &str| parse_duration(text).map(|duration| duration.as_secs()).ok();
        for (text, expected) in [
            ("90s", Some(90)),
            ("10m", Some(600)),
            ("1h30m", Some(5400)),
            ("45", Some(45)),
            ("soon", None),
            ("-5s", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
