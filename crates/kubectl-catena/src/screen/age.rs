//! Durations as kubectl writes them.

use jiff::{SignedDuration, Timestamp};

/// How long ago a time was, as in the AGE column of kubectl.
pub fn age(now: Timestamp, then: Timestamp) -> String {
    duration(now.duration_since(then))
}

/// A duration with at most two units, the finer one only while it matters.
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
}
