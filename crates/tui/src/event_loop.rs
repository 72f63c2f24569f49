//! The event loop: keys, events of the session and answers in; frames and requests out.
//!
//! Nothing is drawn unless something has happened. Everything that happens within a frame's time is drawn at once, except that a key is
//! answered right away.

use std::io::{self, Stdout, stdout};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{Event as TerminalEvent, EventStream, KeyEventKind, MouseEventKind};
use futures_core::Stream;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use retake_agent::contract::{Action, Command, Mentions, Reason, Refusal, Reply};
use retake_agent::ids;
use retake_agent::live::{Asker, Listener, LiveError, LiveSession, Notification};
use retake_agent::view::View;
use thiserror::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::app::{App, Asked, Effect, Guide, Input, NextSession};
use crate::external;
use crate::screen::Screen;
use crate::terminal::Taken;
use crate::theme::{Colours, Theme};

/// How long a frame stands at least, unless a key is pressed.
const FRAME: Duration = Duration::from_millis(16);
/// How often something that moves is drawn.
const TURN: Duration = Duration::from_millis(120);
/// Lines that one notch of the wheel scrolls.
const NOTCH: i32 = 3;

/// What the client is told when it starts.
pub struct ClientOptions {
    /// With or without colours.
    pub colours: Colours,
    /// The user's editor.
    pub editor: String,
    /// Where relative paths begin.
    pub current_dir: PathBuf,
    /// What a newcomer is shown.
    pub guide: Option<Box<dyn Guide>>,
    /// What is said to begin with.
    pub greeting: Option<String>,
    /// Shows the session in a browser too, if that can be had.
    pub web: Option<Web>,
}

/// Gives an address at which a browser shows the session, or says why it cannot. May wait.
pub type Web = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

/// The terminal could not be used.
#[derive(Debug, Error)]
pub enum TerminalError {
    /// It could not be taken over, or written to.
    #[error("the terminal cannot be used")]
    Io(#[from] io::Error),
    /// The session is over.
    #[error("{error}")]
    Over {
        /// How it ended.
        error: LiveError,
        /// What was about to be said.
        unsent: String,
    },
}

/// Shows a session until the user leaves it.
pub async fn run(view: View, live: LiveSession, mut options: ClientOptions) -> Result<NextSession, TerminalError> {
    let (app, effects) = App::new(view, Theme::new(options.colours), options.guide.take(), ids::now());
    let taken = Taken::take()?;
    let area = size()?;
    let (answers, answered) = mpsc::unbounded_channel();
    let mut client = TerminalClient {
        app,
        asker: live.asker,
        told: live.told,
        answers,
        answered,
        keys: Some(EventStream::new()),
        stops: Stops::listen()?,
        screen: Screen::new(stdout(), area),
        area,
        options,
        taken: Some(taken),
    };
    // Whoever had the terminal before may have died in it.
    client.screen.reset(area)?;
    if let Some(greeting) = client.options.greeting.take() {
        client.app.greet(greeting);
    }
    client.go_on(effects).await
}

struct TerminalClient {
    app: App,
    asker: Asker,
    told: Listener,
    answers: mpsc::UnboundedSender<Input>,
    answered: mpsc::UnboundedReceiver<Input>,
    /// Away only while something else has the terminal: it would take that one's keys.
    keys: Option<EventStream>,
    stops: Stops,
    screen: Screen<Stdout>,
    area: Rect,
    options: ClientOptions,
    /// Away only while something else has the terminal.
    taken: Option<Taken>,
}

/// What happened.
enum Happened {
    /// Something to take in; a key is answered at once.
    Input(Input),
    /// The terminal has another size.
    Resized,
    /// Nothing that matters.
    Nothing,
    /// A frame is due.
    FrameDue,
    /// The process is to end.
    Stopped,
    /// The process was stopped, and goes on: the terminal may be anybody's by now.
    Continued,
}

/// Signals that have to be answered in good order.
struct Stops {
    terminate: Signal,
    hang_up: Signal,
    interrupt: Signal,
    resume: Signal,
}

impl Stops {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            resume: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        })
    }

    async fn next(&mut self) -> Happened {
        tokio::select! {
            _ = self.terminate.recv() => Happened::Stopped,
            _ = self.hang_up.recv() => Happened::Stopped,
            _ = self.interrupt.recv() => Happened::Stopped,
            _ = self.resume.recv() => Happened::Continued,
        }
    }
}

impl TerminalClient {
    async fn go_on(&mut self, effects: Vec<Effect>) -> Result<NextSession, TerminalError> {
        if let Some(next) = self.carry_out(effects).await? {
            return Ok(next);
        }
        self.draw()?;
        let mut drawn = Instant::now();
        let mut is_due = false;
        loop {
            let happened = self.next(is_due, drawn).await?;
            let is_key = matches!(happened, Happened::Input(Input::Key(_) | Input::Paste(_)));
            match happened {
                Happened::Input(input) => {
                    let effects = self.app.update(input, ids::now());
                    if let Some(next) = self.carry_out(effects).await? {
                        return Ok(next);
                    }
                    is_due = true;
                }
                Happened::Resized => is_due = true,
                Happened::Continued => {
                    self.give_away();
                    self.take_again()?;
                    is_due = true;
                }
                Happened::Nothing => continue,
                Happened::FrameDue => is_due = true,
                Happened::Stopped => {
                    let effects = self.app.stop();
                    self.carry_out(effects).await?;
                    return Ok(NextSession::Quit);
                }
            }
            if is_due && (is_key || drawn.elapsed() >= FRAME) {
                self.draw()?;
                drawn = Instant::now();
                is_due = false;
            }
        }
    }

    /// Waits for something to happen.
    async fn next(&mut self, is_due: bool, drawn: Instant) -> Result<Happened, TerminalError> {
        let pause = if is_due { FRAME } else { TURN };
        let waits = is_due || self.app.is_moving();
        tokio::select! {
            biased;
            stop = self.stops.next() => Ok(stop),
            key = next_key(&mut self.keys) => match key {
                Some(event) => Ok(happened(event?)),
                None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            },
            // What led to an answer is told before it, and is taken in before it.
            told = self.told.next() => match told {
                Notification::Event(event) => Ok(Happened::Input(Input::Event(event))),
                Notification::Missed(view) => Ok(Happened::Input(Input::Missed(view))),
                Notification::Over(error) => Err(TerminalError::Over { error, unsent: self.app.unsent() }),
            },
            Some(answer) = self.answered.recv() => Ok(Happened::Input(answer)),
            () = sleep_until(drawn + pause), if waits => match is_due {
                true => Ok(Happened::FrameDue),
                false => Ok(Happened::Input(Input::Tick)),
            },
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        // That it has another size may have got lost on the way.
        let area = size()?;
        if area != self.area {
            self.area = area;
            self.screen.reset(area)?;
        }
        let mut frame = Buffer::empty(self.area);
        let cursor = self.app.draw(self.area, &mut frame);
        self.screen.show(frame, cursor).map(drop)
    }

    /// Does what is to be done; tells what follows if this is over.
    async fn carry_out(&mut self, effects: Vec<Effect>) -> Result<Option<NextSession>, TerminalError> {
        for effect in effects {
            match effect {
                Effect::Ask(asked, command) => self.ask(asked, command).await,
                Effect::Say { parts, draft } => {
                    let command = Action::Prompt {
                        parts: parts.clone(),
                        allow: None,
                        unprotected: false,
                        draft: Some(draft).filter(|draft| !draft.is_empty()),
                        mentions: Mentions::Attach,
                    };
                    self.ask(Asked::Said(parts), command.into()).await;
                }
                Effect::Edit(text) => {
                    let input = Input::Edited(self.edit(&text)?);
                    self.app.update(input, ids::now());
                }
                Effect::Export(path, text) => {
                    let input = Input::Exported(external::export(&self.options.current_dir, &path, &text));
                    self.app.update(input, ids::now());
                }
                Effect::Web => {
                    let (web, answers) = (self.options.web.clone(), self.answers.clone());
                    let none = || Err("this session is for the terminal only".to_owned());
                    // If nobody listens any more, the client has been left.
                    tokio::task::spawn_blocking(move || {
                        answers.send(Input::Web(web.map_or_else(none, |web| web()))).ok()
                    });
                }
                Effect::Redraw => self.screen.reset(self.area)?,
                Effect::Suspend => self.suspend()?,
                Effect::Leave(next) => return Ok(Some(next)),
            }
        }
        Ok(None)
    }

    /// Hands a request in, in order; the answer comes when it comes.
    async fn ask(&mut self, asked: Asked, command: Command) {
        let pending = self.asker.hand_in(command).await;
        self.app.sent(pending.id.clone());
        let answers = self.answers.clone();
        tokio::spawn(async move {
            let answer: Result<Reply, Refusal> = match pending.answer().await {
                Ok(answer) => answer,
                Err(error) => {
                    Err(Refusal { reason: Reason::Ended, message: error.to_string(), hint: None, document: None })
                }
            };
            // If nobody listens any more, the client has been left.
            answers.send(Input::Answered(asked, answer)).ok();
        });
    }

    /// Gives the terminal to an editor.
    fn edit(&mut self, text: &str) -> io::Result<Result<String, String>> {
        self.give_away();
        let name: String = ids::random().iter().map(|byte| format!("{byte:02x}")).collect();
        let edited = external::edit(&self.options.editor, text, &name);
        self.take_again()?;
        Ok(edited)
    }

    /// Goes to the background, and comes back when the shell says so.
    fn suspend(&mut self) -> io::Result<()> {
        self.give_away();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)?;
        self.take_again()
    }

    fn give_away(&mut self) {
        self.keys = None;
        self.taken = None;
    }

    fn take_again(&mut self) -> io::Result<()> {
        // What was meant for the one who had the terminal is not meant for us.
        self.stops = Stops::listen()?;
        self.taken = Some(Taken::take()?);
        self.keys = Some(EventStream::new());
        self.area = size()?;
        self.screen.reset(self.area)
    }
}

/// The next thing that the terminal tells; never, while something else has it.
async fn next_key(keys: &mut Option<EventStream>) -> Option<io::Result<TerminalEvent>> {
    match keys {
        Some(keys) => std::future::poll_fn(|context| Pin::new(&mut *keys).poll_next(context)).await,
        None => std::future::pending().await,
    }
}

fn size() -> io::Result<Rect> {
    let (width, height) = crossterm::terminal::size()?;
    Ok(Rect::new(0, 0, width, height))
}

/// What an event of the terminal means.
fn happened(event: TerminalEvent) -> Happened {
    match event {
        TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => Happened::Input(Input::Key(key)),
        TerminalEvent::Paste(text) => Happened::Input(Input::Paste(text)),
        TerminalEvent::Resize(..) => Happened::Resized,
        TerminalEvent::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollUp => Happened::Input(Input::Wheel(-NOTCH)),
            MouseEventKind::ScrollDown => Happened::Input(Input::Wheel(NOTCH)),
            MouseEventKind::Down(crossterm::event::MouseButton::Left) => Happened::Input(Input::Click(mouse.row)),
            _ => Happened::Nothing,
        },
        TerminalEvent::Key(_) | TerminalEvent::FocusGained | TerminalEvent::FocusLost => Happened::Nothing,
    }
}
