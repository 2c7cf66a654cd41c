//! Whatever fails, at whichever request: the result is that of an undisturbed story.

use std::{iter::repeat_with, time::Duration};

use anyhow::{Result, bail};
use e2e::chaos::{Campaign, Ending, Fault, ListFault, Menu, Plan, WriteFault};
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};

/// Time in which the suite starts stories.
const SHORT: Duration = Duration::from_secs(40);

/// The seed of a run, printed to replay it.
fn chance() -> Result<StdRng> {
    let seed: u64 = match std::env::var("CATENA_CHAOS_SEED") {
        Ok(seed) => seed.parse()?,
        Err(_) => rand::random(),
    };
    println!("the seed is {seed}: `cargo xtask chaos --seed {seed}` replays a random run");
    Ok(StdRng::seed_from_u64(seed))
}

/// A list that stalls is given up after a minute, and a Lease that is not given back expires after 15 s.
fn is_short(plan: &Plan) -> bool {
    let is_long = |fault: &Fault| match fault {
        Fault::List { how, .. } => *how == ListFault::Stall,
        Fault::Write { how: WriteFault::HandOver(ending), .. } => *ending != Ending::Terminated,
        _ => false,
    };
    !plan.faults.iter().any(is_long)
}

mod alone {
    use super::{
        Campaign, Duration, Menu, Plan, Result, SHORT, SliceRandom, bail, chance, is_short, repeat_with,
    };

    mod long {
        use super::*;

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn a_fault_at_any_request_leaves_the_world_as_if_it_had_not_been() -> Result<()> {
            e2e::needs!(HostProcesses);
            let mut chance = chance()?;
            let campaign = Campaign::begin().await?;
            let mut menu = Menu::of(campaign.reference());
            menu.crashes.shuffle(&mut chance);
            menu.hand_overs.shuffle(&mut chance);
            let others = menu.one_of_each(&mut chance).into_iter().filter(is_short);
            let ends = menu.crashes.iter().cloned().zip(menu.hand_overs.iter().cloned());
            let plans = ends
                .zip(others)
                .flat_map(|((crash, hand_over), other)| [vec![crash], vec![other], vec![hand_over]]);
            let run = campaign.run(plans, SHORT).await;
            campaign.end().await?;
            run
        }
    }

    /// The arguments of `cargo xtask chaos`.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "it takes as many minutes as it is asked to"]
    async fn chaos_as_it_is_asked_for() -> Result<()> {
        e2e::needs!(HostProcesses);
        let mut chance = chance()?;
        let minutes: u64 = std::env::var("CATENA_CHAOS_MINUTES").map_or(Ok(5), |minutes| minutes.parse())?;
        let limit = Duration::from_secs(60 * minutes);
        let campaign = Campaign::begin().await?;
        println!("{}", campaign.reference().writes.join("\n"));
        let menu = Menu::of(campaign.reference());
        let each = |plans: Vec<Plan>| plans.into_iter().map(|plan| vec![plan]);
        let run = match (std::env::var("CATENA_CHAOS_PLAN"), std::env::var("CATENA_CHAOS_EVERY").as_deref()) {
            (Ok(plans), _) => campaign.run([Plan::parse_all(&plans)?], limit).await,
            (_, Ok("crash")) => campaign.run(each(menu.crashes), limit).await,
            (_, Ok("hand-over")) => campaign.run(each(menu.hand_overs), limit).await,
            (_, Ok("kind")) => campaign.run(each(menu.one_of_each(&mut chance)), limit).await,
            (_, Ok("fault")) => {
                campaign
                    .run(each(menu.crashes).chain(each(menu.hand_overs)).chain(each(menu.others)), limit)
                    .await
            }
            (_, Ok(other)) => bail!("CATENA_CHAOS_EVERY={other}"),
            (_, Err(_)) => {
                let random = repeat_with(|| menu.some(&mut chance))
                    .inspect(|plans| println!("{}", Plan::print(plans)));
                campaign.run(random, limit).await
            }
        };
        campaign.end().await?;
        run
    }
}
