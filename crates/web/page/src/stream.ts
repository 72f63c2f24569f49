// The events of a session, from wherever this page has got to: connects, goes on where it was cut off, and waits longer each time it fails.
//
// Browsers open few connections to one server. The first tabs keep theirs; the others take turns: each asks for what it has missed, and lets go.
//
// It is read with `fetch` and not with `EventSource`, which can neither name the last event of an earlier page nor tell why it failed.

import { errorOf } from './api';
import type { Event, View } from './contract';
import type { Link } from './store';

export interface Listener {
  /** It begins; the session was at event number `seq`. */
  began(seq: number): void;
  view(view: View): void;
  event(event: Event): void;
  link(link: Link): void;
  /** The last number that was seen, to go on from. */
  seen(): number | null;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;
/** A connection over which nothing comes for so long is taken for dead. */
const SILENCE_MS = 60_000;
/** A tab that nobody has seen for so long lets go of its connection: browsers have few for one server, and what it misses it gets later. */
const REST_MS = 10_000;
/** So long a tab waits that has no connection of its own before it asks again what it has missed, and so long it waits for that. */
const TURN_MS = 1_000;
const MISSED_MS = 5_000;

export class Stream {
  private stopped = false;
  private attempt = 0;
  private abort: AbortController | null = null;
  private wake: (() => void) | null = null;
  private isResting = false;
  private rest: ReturnType<typeof setTimeout> | undefined;
  private isTold = false;

  constructor(
    private readonly session: string,
    private readonly listener: Listener,
  ) {
    void this.run();
    addEventListener('online', this.hurry);
    document.addEventListener('visibilitychange', this.seen);
    // One that was opened in the background is not seen either.
    if (document.hidden) this.seen();
  }

  stop(): void {
    this.stopped = true;
    this.abort?.abort();
    this.wake?.();
    removeEventListener('online', this.hurry);
    document.removeEventListener('visibilitychange', this.seen);
    clearTimeout(this.rest);
  }

  private readonly seen = (): void => {
    clearTimeout(this.rest);
    if (document.hidden) {
      this.rest = setTimeout(() => {
        this.isResting = true;
        this.abort?.abort();
      }, REST_MS);
    } else {
      this.isResting = false;
      this.hurry();
    }
  };

  /** Tries again now. */
  readonly hurry = (): void => {
    if (!document.hidden) this.wake?.();
  };

  private async run(): Promise<void> {
    while (!this.stopped) {
      if (this.isResting) {
        this.isTold = false;
        await new Promise<void>((resolve) => (this.wake = resolve));
        continue;
      }
      if (this.attempt === 0 && !this.isTold) this.tell({ kind: 'connecting' });
      const place = await takePlace();
      const fate = await this.connect(place !== null);
      place?.();
      if (this.stopped || fate === 'final') return;
      if (fate === 'caught up') await this.wait(TURN_MS);
      else if (!this.isResting) await this.pause();
    }
  }

  /** What is told already is not told again: a tab that takes turns is open all the time. */
  private tell(link: Link): void {
    if (link.kind === 'open' && this.isTold) return;
    this.isTold = link.kind === 'open';
    this.listener.link(link);
  }

  private async wait(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wake = null;
  }

  private async pause(): Promise<void> {
    this.attempt += 1;
    const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.attempt - 1));
    // Tabs that were cut off together do not come back together.
    const ms = longest * (0.75 + Math.random() / 4);
    this.tell({ kind: 'waiting', until: Date.now() + ms, attempt: this.attempt });
    await this.wait(ms);
  }

  /** Reads to the end if the connection can be kept, else what was missed. */
  private async connect(isKept: boolean): Promise<'again' | 'final' | 'caught up'> {
    const abort = new AbortController();
    this.abort = abort;
    const headers: Record<string, string> = { Accept: 'text/event-stream', 'X-Retake': '1' };
    const seen = this.listener.seen();
    if (seen !== null) headers['Last-Event-ID'] = String(seen);
    const silence = isKept ? SILENCE_MS : MISSED_MS;
    let watchdog = setTimeout(() => abort.abort(), silence);
    try {
      const response = await fetch(`/api/sessions/${encodeURIComponent(this.session)}/events`, {
        headers,
        signal: abort.signal,
        cache: 'no-store',
      });
      // Read before the connection is let go of below.
      if (!response.ok || !response.body) return await this.failed(response);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new Parser((name, data) => this.take(name, data));
      this.attempt = 0;
      const newest = Number(response.headers.get('X-Retake-Seq') ?? 0);
      this.listener.began(newest);
      this.tell({ kind: 'open' });
      for (;;) {
        if (!isKept && (this.listener.seen() ?? -1) >= newest) return 'caught up';
        const { done, value } = await reader.read();
        clearTimeout(watchdog);
        if (done || this.stopped) return 'again';
        watchdog = setTimeout(() => abort.abort(), silence);
        parser.push(value);
      }
    } catch {
      return 'again';
    } finally {
      clearTimeout(watchdog);
      abort.abort();
    }
  }

  private async failed(response: Response): Promise<'again' | 'final'> {
    if (response.status === 401 || response.status === 403) {
      this.tell({ kind: 'shut' });
      return 'final';
    }
    if (response.status === 404) {
      this.tell({ kind: 'missing', message: (await errorOf(response)).message });
      return 'final';
    }
    return 'again';
  }

  private take(name: string, data: string): void {
    if (this.stopped) return;
    if (name === 'view') {
      this.listener.view(JSON.parse(data) as View);
    } else if (name === 'event') {
      this.listener.event(JSON.parse(data) as Event);
    } else if (name === 'ended') {
      // Another process may open it: what comes next tells.
      this.abort?.abort();
    }
  }
}

/** So many connections the tabs of a browser keep: it has six for one server, and commands need some. */
const PLACES = 3;

/** Takes one of the places for connections that are kept, if one is free: what it returns gives it back. Where there are no locks, all may. */
async function takePlace(): Promise<(() => void) | null> {
  if (!('locks' in navigator)) return () => {};
  for (let number = 0; number < PLACES; number += 1) {
    const place = await new Promise<(() => void) | null>((resolve) => {
      const held = (lock: Lock | null) => (lock ? new Promise<void>((free) => resolve(free)) : resolve(null));
      navigator.locks.request(`retake-stream-${number}`, { ifAvailable: true }, held).catch(() => resolve(null));
    });
    if (place) return place;
  }
  return null;
}

/** Reads server-sent events from pieces of text. */
export class Parser {
  private rest = '';
  private name = '';
  private data: string[] = [];

  constructor(private readonly emit: (name: string, data: string) => void) {}

  push(text: string): void {
    this.rest += text;
    let from = 0;
    for (;;) {
      const end = this.rest.indexOf('\n', from);
      if (end < 0) break;
      let line = this.rest.slice(from, end);
      if (line.endsWith('\r')) line = line.slice(0, -1);
      from = end + 1;
      this.line(line);
    }
    this.rest = this.rest.slice(from);
  }

  private line(line: string): void {
    if (line === '') {
      if (this.name || this.data.length > 0) this.emit(this.name || 'message', this.data.join('\n'));
      this.name = '';
      this.data = [];
      return;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.name = value;
    else if (field === 'data') this.data.push(value);
  }
}
