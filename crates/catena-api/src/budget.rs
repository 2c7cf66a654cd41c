use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The numbers of replicas that a replacement may add, and that may be missing: percentages of the surge are rounded up, those of
/// the unavailable replicas down, and both are never 0 at once (as for a Deployment).
#[must_use]
pub fn surge_and_unavailable(surge: &IntOrString, unavailable: &IntOrString, replicas: i32) -> (i32, i32) {
    let (surge, unavailable) = (share(surge, replicas, 99), share(unavailable, replicas, 0));
    (surge, if surge == 0 { unavailable.max(1) } else { unavailable })
}

/// A number, or a percentage of the replicas, to which `rounding` hundredths are added.
fn share(amount: &IntOrString, replicas: i32, rounding: i64) -> i32 {
    match amount {
        IntOrString::Int(number) => (*number).max(0),
        // The schema allows only a percentage here.
        IntOrString::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let share = (i64::from(replicas).saturating_mul(percent).saturating_add(rounding)) / 100;
            i32::try_from(share).unwrap_or(replicas)
        }
    }
}
