//! `job_output` and `job_end`: the model's hold on its jobs.

use super::{Job, JobId, JobState, Jobs};
use crate::tool::arguments::{ArgumentKind, Arguments, required};
use crate::tool::toolbox::{Tool, ToolContext};
use crate::tool::{Access, Output, Prepared};

pub(crate) const OUTPUT: Tool = Tool {
    name: "job_output",
    description: "Returns what a job wrote since you last asked, and whether it is still running or with which code it ended. Jobs are \
started by `bash` with `background`, or left running by a command. It does not wait: do something else before you ask again. Of long output \
the first 10 KB and last 20 KB are returned.",
    arguments: &[required("job", ArgumentKind::Integer(1), "The job's number.")],
    prepare: |bench, arguments| {
        let (jobs, id) = (bench.jobs.clone(), id(arguments));
        known(bench, id)?;
        Ok(Prepared {
            title: format!("job {id}: output"),
            access: Access::Reads,
            preview: None,
            run: Box::new(move |_| Box::pin(async move { output(&jobs, id) })),
        })
    },
};

pub(crate) const END: Tool = Tool {
    name: "job_end",
    description: "Ends a job with everything that it started, and returns the rest of its output. End jobs that are no longer needed, such as \
a server that was started for a test.",
    arguments: &[required("job", ArgumentKind::Integer(1), "The job's number.")],
    prepare: |bench, arguments| {
        let (jobs, id) = (bench.jobs.clone(), id(arguments));
        known(bench, id)?;
        Ok(Prepared {
            title: format!("job {id}: end"),
            access: Access::Reads,
            preview: None,
            run: Box::new(move |_| {
                Box::pin(async move {
                    jobs.end(id).await;
                    output(&jobs, id)
                })
            }),
        })
    },
};

fn id(arguments: &Arguments) -> JobId {
    JobId(arguments.integer("job").unwrap_or_default())
}

fn known(bench: &ToolContext, id: JobId) -> Result<(), Output> {
    let jobs = bench.jobs.list();
    if jobs.iter().any(|job| job.id == id) {
        return Ok(());
    }
    let known: Vec<String> = jobs.iter().map(|job| format!("{} (`{}`)", job.id, job.command)).collect();
    let known =
        if known.is_empty() { "There are no jobs.".to_owned() } else { format!("The jobs are {}.", known.join(", ")) };
    Err(Output::failed(format!("There is no job {id}. {known}")))
}

fn output(jobs: &Jobs, id: JobId) -> Output {
    let Some(read) = jobs.read(id) else {
        return Output::failed(format!("There is no job {id} any more."));
    };
    let text = read.text.trim_end_matches('\n');
    let state = state(&read.job);
    Output::done(if text.is_empty() { format!("[No new output. {state}]") } else { format!("{text}\n[{state}]") })
}

fn state(job: &Job) -> String {
    match job.state {
        JobState::Running => format!("Job {} is running.", job.id),
        JobState::Ended { exit } => format!("Job {} has ended: {exit}.", job.id),
    }
}
