// Colours for code: a small reader for the shapes that most languages share. It may be wrong about a token, never about the text.

/** A piece of code and what it looks like; null for plain. */
export type Token = [kind: 'k' | 's' | 'c' | 'n' | 'f' | 't' | null, text: string];

/** What comes after so much is shown without colours. */
const MAX_LENGTH = 60_000;
/** A piece of code has about so many characters. */
const PIECE = 4_000;
/** Nothing that comes so far behind a token can change it. */
const AHEAD = 16;

const words = (text: string) => new Set(text.split(' '));

const C_WORDS = words(
  'abstract as async await bool boolean break byte case catch char class const continue crate debugger default defer delete do double dyn else enum export extends extern false final finally float fn for from func function get go goto if impl implements import in instanceof int interface internal is let long loop match mod move mut namespace new nil null nullptr object of operator out override package private protected pub public readonly ref return select self Self set short sizeof static string struct super switch template this throw throws trait true try type typedef typename typeof undefined union unsafe unsigned use using val var virtual void volatile when where while with yield',
);
const HASH_WORDS = words(
  'and as assert async await begin break case class continue def del do done elif else elsif end ensure esac except exec exit export False fi finally for from function global if import in is lambda let local module next nil None nonlocal not or pass raise redo require rescue retry return self set shift source then True try undef unless until when while with yield true false null',
);
const SQL_WORDS = words(
  'add all alter and as asc begin between by case check column commit constraint create cross database default delete desc distinct drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references right rollback select set table then true union unique update using values view when where with local function return elseif nil do while repeat until for',
);

interface Family {
  pattern: RegExp;
  keywords: Set<string>;
  /** Whether words count in any case. */
  anyCase?: boolean;
}

const STRING = `"(?:\\\\.|[^"\\\\\\n])*"?|'(?:\\\\.|[^'\\\\\\n])*'?`;
const NUMBER = '\\b\\d[\\w.]*';
const WORD = '[A-Za-z_$][\\w$]*';
const family = (comment: string, string: string, keywords: Set<string>, anyCase = false): Family => ({
  pattern: new RegExp(`(${comment})|(${string})|(${NUMBER})|(${WORD})|([^\\w"'\`/#<>-]+|.)`, 'gsy'),
  keywords,
  anyCase,
});

const C_LIKE = family('//[^\\n]*|/\\*.*?(?:\\*/|$)', `${STRING}|\`(?:\\\\.|[^\`\\\\])*\`?`, C_WORDS);
// A lifetime is no string.
const RUST = family(
  '//[^\\n]*|/\\*.*?(?:\\*/|$)',
  `"(?:\\\\.|[^"\\\\])*"?|'(?:\\\\.[^'\\n]{0,12}|[^'\\\\\\n])'`,
  C_WORDS,
);
const HASH = family('#[^\\n]*', `"""(?:.*?)(?:"""|$)|'''(?:.*?)(?:'''|$)|${STRING}`, HASH_WORDS);
const DASH = family('--[^\\n]*|/\\*.*?(?:\\*/|$)', STRING, SQL_WORDS, true);
const MARKUP = family('<!--.*?(?:-->|$)', STRING, new Set());
const CSS = family('/\\*.*?(?:\\*/|$)', STRING, words('important media import supports keyframes and not only from to'));
const JSON_LIKE = family('//[^\\n]*', STRING, words('true false null'));

// No object: the model names languages, and `constructor` is one of no family.
const FAMILIES = new Map<string, Family>();
const name = (names: string, one: Family) => names.split(' ').forEach((key) => FAMILIES.set(key, one));
name('js jsx mjs cjs ts tsx javascript typescript c h cc cpp cxx hpp java kt kotlin swift cs csharp go golang php scala dart zig proto', C_LIKE);
name('rs rust', RUST);
name('py python rb ruby sh bash zsh shell console fish yaml yml toml ini makefile make dockerfile docker r perl pl elixir ex nix tf', HASH);
name('sql lua haskell hs ada', DASH);
name('html xml svg vue svelte', MARKUP);
name('css scss less', CSS);
name('json jsonc json5 jsonl', JSON_LIKE);

/** The language of a file, by the end of its name. */
export function languageOf(path: string): string {
  const file = path.split('/').at(-1) ?? '';
  if (/^(Makefile|Dockerfile)$/.test(file)) return file.toLowerCase();
  return file.includes('.') ? (file.split('.').at(-1) ?? '').toLowerCase() : '';
}

export function highlight(code: string, language: string): Token[] {
  const tokens: Token[] = [];
  for (const token of read(code, 0, language)) append(tokens, token);
  return tokens;
}

/** Colours for code that may still be coming, in pieces of whole lines. Those that nothing can change any more are not read again. */
export class Colours {
  private settled: Token[][] = [];
  private before = '';
  private language = '';

  take(code: string, language: string): Token[][] {
    if (language !== this.language || !code.startsWith(this.before)) {
      this.settled = [];
      this.before = '';
      this.language = language;
    }
    const open: Token[][] = [];
    let piece: Token[] = [];
    let start = this.before.length;
    let end = start;
    for (const token of read(code, start, language)) {
      append(piece, token);
      end += token[1].length;
      if (end - start < PIECE || code[end - 1] !== '\n') continue;
      if (open.length === 0 && end + AHEAD <= code.length) {
        this.settled.push(piece);
        this.before = code.slice(0, end);
      } else {
        open.push(piece);
      }
      [piece, start] = [[], end];
    }
    if (piece.length > 0) open.push(piece);
    return [...this.settled, ...open];
  }
}

function append(tokens: Token[], [kind, text]: Token): void {
  const last = tokens.at(-1);
  if (last && last[0] === kind) last[1] += text;
  else tokens.push([kind, text]);
}

/** Reads code from `from` on, where a token begins. Plain text ends with a line, if there is an end of one in it. */
function* read(code: string, from: number, language: string): Generator<Token> {
  const found = FAMILIES.get(language);
  const isDiff = language === 'diff' || language === 'patch';
  let at = from;
  while (found && at < Math.min(code.length, MAX_LENGTH)) {
    found.pattern.lastIndex = at;
    const [text = '', comment, string, number, word] = found.pattern.exec(code) ?? [];
    if (!text) break;
    at += text.length;
    if (comment) yield ['c', text];
    else if (string) yield ['s', text];
    else if (number) yield ['n', text];
    else if (word) yield [kindOf(text, found, code[at] ?? ''), text];
    else {
      const line = text.lastIndexOf('\n') + 1;
      if (line > 0) yield [null, text.slice(0, line)];
      if (line < text.length) yield [null, text.slice(line)];
    }
  }
  while (at < code.length) {
    const newline = code.indexOf('\n', at);
    const text = code.slice(at, newline < 0 ? code.length : newline + 1);
    yield [isDiff && at < MAX_LENGTH ? diffKind(text) : null, text];
    at += text.length;
  }
}

function kindOf(word: string, family: Family, next: string): Token[0] {
  if (family.keywords.has(family.anyCase ? word.toLowerCase() : word)) return 'k';
  if (next === '(' || next === '!') return 'f';
  return /^[A-Z]\w*[a-z]/.test(word) ? 't' : null;
}

function diffKind(line: string): Token[0] {
  return line.startsWith('+') ? 's' : line.startsWith('-') ? 'k' : line.startsWith('@') ? 'c' : null;
}
