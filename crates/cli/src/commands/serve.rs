//! `retake serve`: the sessions of a workspace in a browser.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use retake_agent::model::Model;
use retake_engine::{Workspace, plain_file};
use retake_web::{Server, StartError};
use serde::Serialize;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::run::StopSignals;
use crate::agent;
use crate::agent::model::{self, ModelArgs, ModelUse};
use crate::agent::web;
use crate::failure::{Failure, Result};
use crate::output::json;
use crate::output::quote;
use crate::output::ui::{BOLD, DIM, Format, RED, Ui};
use crate::workspace::context::CommandContext;

/// Bytes of an address that are read.
const LONGEST_ADDRESS: u64 = 100;

/// Show the sessions of this directory in a browser
///
/// Prints an address that lets one browser in, once; press Enter for another one. The page is the same live session that terminals show:
/// whatever is done in one of them is seen in all. Only this machine is served.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  retake serve --open\n  retake serve --port 0")]
pub struct ServeArgs {
    /// Port to listen on; 0 for one that is free [default: 7180, or a free one if that is taken]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Address to listen on instead of this machine's own: whoever reaches it can read what is sent, and with that run commands as you
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Serialize)]
struct ServeDocument<'a> {
    version: u32,
    /// Lets one browser in, once.
    url: &'a str,
    address: String,
    port: u16,
    workspace: String,
}

pub fn run(ui: &mut Ui, here: &CommandContext, args: &ServeArgs) -> Result<()> {
    let runtime = agent::runtime()?;
    // What is wrong with the workspace or the model is said now, and not to whoever opens the page.
    let store = Workspace::open_or_create(here.environment.clone())?.store_dir().to_owned();
    let model = model::find(runtime.handle(), &args.model, &here.agent, ModelUse::Ask, None)?;
    // Whoever has read the address may tell it to stop.
    let mut stops = runtime.block_on(async { StopSignals::listen() })?;
    let (server, mut warnings) = start(&runtime, here, args, &model)?;
    let url = server.url();
    let (place, other) = take_place(&store, server.address());
    greet(ui, here, &server, &url)?;
    if let Some(other) = other {
        ui.warn(&format!(
            "another `retake serve` shows this directory already, at http://{other}; both show the same"
        ))?;
    }
    if args.open {
        open(ui, &url)?;
    }
    let mut wishes = wishes(ui);
    runtime.block_on(async {
        loop {
            tokio::select! {
                () = stops.next() => break,
                Some(warning) = warnings.recv() => ui.warn(&warning)?,
                Some(()) = wishes.recv() => tell(ui, &server.url())?,
            }
        }
        writeln!(ui.talk()?, "{DIM}stopping; press Ctrl+C again not to wait until everything is stored{DIM:#}")?;
        tokio::select! {
            () = stops.next() => {}
            () = server.stop() => {}
        }
        Ok::<_, Failure>(())
    })?;
    drop(place);
    Ok(())
}

/// Tells other servers of this directory that one is here, for as long as the file that comes back is open; and where another one is, if
/// there is one. Two of them do no harm, so nothing that fails here matters.
fn take_place(store: &Path, address: SocketAddr) -> (Option<File>, Option<String>) {
    let path = store.join("serve.lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let Ok(mut file) = plain_file::open_with(&mut options, &path) else { return (None, None) };
    if file.try_lock().is_err() {
        let mut text = String::new();
        let is_read = file.take(LONGEST_ADDRESS).read_to_string(&mut text).is_ok();
        return (None, is_read.then(|| quote::one_line(text.trim()).into_owned()));
    }
    let written = file.set_len(0).and_then(|()| write!(file, "{address}"));
    (written.is_ok().then_some(file), None)
}

/// Starts the server: where it was wished for, else at the usual port, else at a free one.
fn start(
    runtime: &Runtime,
    here: &CommandContext,
    args: &ServeArgs,
    model: &Model,
) -> Result<(Server, mpsc::UnboundedReceiver<String>), StartError> {
    let host = args.host.unwrap_or(Ipv4Addr::LOCALHOST.into());
    match args.port {
        Some(port) => web::start(runtime.handle(), here, model.clone(), SocketAddr::new(host, port)),
        None => web::start_somewhere(runtime.handle(), here, model, host),
    }
}

fn greet(ui: &mut Ui, here: &CommandContext, server: &Server, url: &str) -> io::Result<()> {
    let address = server.address();
    if !address.ip().is_loopback() {
        let talk = ui.talk()?;
        writeln!(
            talk,
            "{RED}{BOLD}WARNING: this server can be reached from other machines, at {address}.{BOLD:#}{RED:#}"
        )?;
        writeln!(
            talk,
            "{RED}Nothing is encrypted: whoever can read the traffic can use this session, which runs{RED:#}"
        )?;
        writeln!(talk, "{RED}commands as you. Without `--host`, only this machine is served.{RED:#}")?;
    }
    let root = here.environment.root.display().to_string();
    if ui.format == Format::Json {
        let (address, port) = (address.to_string(), address.port());
        ui.json(&ServeDocument { version: json::VERSION, url, address, port, workspace: root })?;
        return ui.out.flush();
    }
    writeln!(ui.talk()?, "Sessions of {} in the browser, until you press Ctrl+C:", quote::one_line(&root))?;
    tell(ui, url)?;
    if address.ip().is_unspecified() {
        let own = own_address(address.ip()).map_or("this machine's address".to_owned(), |ip| format!("`{ip}`"));
        let local = if address.is_ipv4() { "127.0.0.1" } else { "::1" };
        writeln!(ui.talk()?, "{DIM}from another machine: the same with {own} in the place of `{local}`{DIM:#}")?;
    }
    Ok(())
}

/// The address that this machine has for others, as far as the system can tell: the one that it would speak from. Nothing is sent.
fn own_address(listening: IpAddr) -> Option<IpAddr> {
    // Addresses that are for documentation, and nobody's.
    let (any, far): (IpAddr, IpAddr) = match listening {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((far, 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_loopback() && !own.is_unspecified()).then_some(own)
}

fn tell(ui: &mut Ui, url: &str) -> io::Result<()> {
    if ui.format == Format::Text {
        writeln!(ui.out, "{url}")?;
        ui.out.flush()?;
        writeln!(ui.talk()?, "{DIM}the address works once; press Enter for another one{DIM:#}")?;
    }
    Ok(())
}

/// Tells each time somebody presses Enter.
fn wishes(ui: &Ui) -> mpsc::Receiver<()> {
    let (wish, wishes) = mpsc::channel(1);
    if ui.format == Format::Text && io::stdin().is_terminal() {
        // It ends with the process.
        thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                if line.is_err() || wish.blocking_send(()).is_err() {
                    return;
                }
            }
        });
    }
    wishes
}

/// Opens the page in the user's browser.
fn open(ui: &mut Ui, url: &str) -> io::Result<()> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let silent = || Stdio::null();
    match Command::new(opener).arg(url).stdin(silent()).stdout(silent()).stderr(silent()).spawn() {
        Ok(mut opener) => {
            // Some of them stay for as long as the browser does.
            thread::spawn(move || opener.wait());
            Ok(())
        }
        Err(err) => ui.warn(&format!("the browser cannot be opened: `{opener}`: {err}")),
    }
}
