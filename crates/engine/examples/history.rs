//! Measures a long history: `history DIR STORE CHECKPOINTS`.
//!
//! Takes that many checkpoints, one small edit each, then prints one line of JSON with milliseconds (best of seven):
//! listing all checkpoints, finding one, comparing the newest with the oldest and with the one before, one more checkpoint.

use std::path::PathBuf;
use std::time::Instant;

use retake_engine::checkpoint::NewCheckpoint;
use retake_engine::id::CheckpointId;
use retake_engine::progress::NoProgress;
use retake_engine::view::Side;
use retake_engine::{Breadth, Durability, Environment, Settings, Timestamp, Workspace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let mut next = || args.next().ok_or("usage: history DIR STORE CHECKPOINTS");
    let root = PathBuf::from(next()?).canonicalize()?;
    let data_dir = PathBuf::from(next()?);
    let count: u64 = next()?.to_string_lossy().parse()?;
    let mut workspace = Workspace::open_or_create(Environment {
        root: root.clone(),
        data_dir,
        global_excludes: None,
        homes: Vec::new(),
        breadth: Breadth::Guarded,
        settings: Settings::default(),
        threads: 2,
    })?;
    workspace.watch();
    for turn in 0..count {
        take(&mut workspace, &root, turn)?;
    }
    let checkpoints = workspace.checkpoints().all()?;
    let (newest, before, oldest) = (&checkpoints[0], &checkpoints[1], &checkpoints[checkpoints.len() - 1]);
    let id = oldest.id.to_string();
    let sides = [newest, before, oldest].map(|checkpoint| Side::Stored(checkpoint.snapshot));
    let figures = [
        ("list", best(|| Ok(workspace.checkpoints().all().map(drop)?))?),
        ("resolve", best(|| Ok(workspace.checkpoints().resolve(&id).map(drop)?))?),
        ("diff_last", best(|| Ok(workspace.diff(&sides[1], &sides[0]).map(drop)?))?),
        ("diff_all", best(|| Ok(workspace.diff(&sides[2], &sides[0]).map(drop)?))?),
    ];
    let mut turn = count;
    let checkpoint = best(|| {
        turn += 1;
        take(&mut workspace, &root, turn)
    })?;
    let fields: Vec<String> = figures.iter().map(|(name, ms)| format!("\"{name}\":{ms:.3}")).collect();
    let line = format!("{{{},\"checkpoint\":{checkpoint:.3}}}\n", fields.join(","));
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes())?;
    Ok(())
}

fn take(workspace: &mut Workspace, root: &std::path::Path, turn: u64) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::write(root.join(format!("history_{}.txt", turn % 50)), format!("turn {turn}\n"))?;
    let mut random = [0; 10];
    // Spread over the whole range, so that a beginning of an id names one checkpoint, as it does with random ids.
    random[..8].copy_from_slice(&turn.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let at = Timestamp(i64::try_from(turn)?);
    let new = NewCheckpoint { id: CheckpointId::new(at, random), at, label: None };
    workspace.checkpoints_mut().take(new, Durability::Soon, &NoProgress)?;
    Ok(())
}

fn best(mut work: impl FnMut() -> Result<(), Box<dyn std::error::Error>>) -> Result<f64, Box<dyn std::error::Error>> {
    let mut best = f64::MAX;
    for _ in 0..7 {
        let started = Instant::now();
        work()?;
        best = best.min(started.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(best)
}
