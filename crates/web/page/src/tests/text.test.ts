import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import test from 'node:test';

import type { RewindDocument } from '../contract';
import { compare, ofCall } from '../text/edits';
import { Colours, highlight, languageOf } from '../text/highlight';
import { parseInline, safe } from '../text/inline';
import { MAX_BLOCK, parse, Pieces } from '../text/markdown';
import { clean, cleanLines, elapsed, inFiles, operationName, pathText, plainOutput, size, tokens } from '../text/format';

const drawn = (old: string, now: string) =>
  compare(old, now)
    .map((line) => `${{ same: ' ', added: '+', removed: '-' }[line.kind]}${line.text}`)
    .join('\n');

test('blocks of markdown are told apart', () => {
  const kinds = parse('# A\n\ntext\nmore\n\n- one\n- two\n  - deep\n\n1. x\n2. y\n\n> quote\n\n```rs\nfn x() {}\n```\n\n---\n\n| a | b |\n|---|:-:|\n| 1 | 2 |').map((node) => node.kind);
  assert.deepEqual(kinds, ['heading', 'paragraph', 'list', 'list', 'quote', 'code', 'rule', 'table']);
});

test('a fence that is still open is code already', () => {
  assert.deepEqual(parse('a\n\n```py\nx = 1\n'), [
    { kind: 'paragraph', children: ['a'] },
    { kind: 'code', language: 'py', text: 'x = 1\n' },
  ]);
});

test('HTML is text', () => {
  assert.deepEqual(parse('<img src=x onerror=alert(1)> <b>x</b>'), [{ kind: 'paragraph', children: ['<img src=x onerror=alert(1)> <b>x</b>'] }]);
});

test('only addresses of the web are followed', () => {
  assert.equal(safe('javascript:alert(1)'), null);
  assert.equal(safe(' javascript:alert(1)'), null);
  assert.equal(safe('data:text/html,x'), null);
  assert.equal(safe('https://a.b'), 'https://a.b');
  assert.deepEqual(parseInline('[x](javascript:alert(1))')[0], { kind: 'link', href: null, children: ['x'] });
  assert.deepEqual(parseInline('![x](https://a.b/i.png)')[0], { kind: 'link', href: 'https://a.b/i.png', children: ['x'] });
});

test('emphasis nests and marks without an end are text', () => {
  assert.deepEqual(parseInline('**a *b* c**'), [{ kind: 'strong', children: ['a ', { kind: 'em', children: ['b'] }, ' c'] }]);
  assert.deepEqual(parseInline('a * b * c snake_case_name **open'), ['a * b * c snake_case_name **open']);
  assert.deepEqual(parseInline('`a*b*` ~~x~~'), [{ kind: 'code', text: 'a*b*' }, ' ', { kind: 'del', children: ['x'] }]);
  assert.deepEqual(parseInline('see https://a.b/c_d_e.'), ['see ', { kind: 'link', href: 'https://a.b/c_d_e', children: ['https://a.b/c_d_e'] }, '.']);
});

test('lists with tasks and code in them', () => {
  const [list] = parse('- [x] done\n- [ ] open\n\n  ```\n  code\n  ```\n');
  assert.equal(list?.kind, 'list');
  assert.ok(list?.kind === 'list' && list.items[0]?.checked === true && list.items[1]?.checked === false);
  assert.ok(list?.kind === 'list' && list.items[1]?.children[1]?.kind === 'code');
});

const chunks = (text: string) => new Pieces().take(text).map((piece) => piece.text);

test('pieces of a coming text are those of the whole, whatever comes', () => {
  const text = 'a\n\n- x\n\n- y\n\n  z\n\n```\n\n\nq\n```\n\n# h\ntext\n\n> a\n> b\n\nend';
  const whole = JSON.stringify(parse(text));
  assert.equal(JSON.stringify(chunks(text).flatMap((piece) => parse(piece))), whole);
  for (let at = 1; at < text.length; at += 1) {
    const [now, later] = [chunks(text.slice(0, at)), chunks(text)];
    // All but the last piece stay as they are.
    now.slice(0, -1).forEach((piece, index) => assert.equal(piece.trimEnd(), later[index]?.trimEnd()));
  }
});

test('a text that comes bit by bit is cut like one that is there', () => {
  const line = 'a line of a log without an end\n';
  const list = `- ${line}`.repeat(MAX_BLOCK / 20);
  const fence = `\`\`\`\n${line.repeat(MAX_BLOCK / 20)}\`\`\`\nand **more**\n`;
  const text = `# a\n\n${line.repeat(MAX_BLOCK / 10)}- x\n\n- y\n1\n\n${'é🦀'.repeat(MAX_BLOCK)}\n\n${list}\n${fence}1. one\n\n2. two\n`;
  const whole = new Pieces().take(text);
  for (const step of [997, 10_007]) {
    const coming = new Pieces();
    for (let at = 0; at < text.length; at += step) {
      const now = coming.take(text.slice(0, at));
      assert.deepEqual(now, new Pieces().take(text.slice(0, at)));
    }
    assert.deepEqual(coming.take(text), whole);
    // Another text, shorter or not, is another text.
    assert.deepEqual(coming.take('x\n\ny'), new Pieces().take('x\n\ny'));
  }
  assert.equal(whole.map((piece) => piece.text).join(''), text);
  assert.ok(whole.every((piece) => !/^[\udc00-\udfff]/.test(piece.text)));
  assert.ok(whole.some((piece) => piece.kind === 'plain') && whole.every((piece) => piece.text.length < 2 * MAX_BLOCK || piece.text.includes('```')));
  // Items and what is below a fence are still read.
  const read = whole.filter((piece) => piece.kind === 'markdown').flatMap((piece) => parse(piece.text));
  assert.equal(read.filter((node) => node.kind === 'list').flatMap((node) => (node.kind === 'list' ? node.items : [])).length, MAX_BLOCK / 20 + 2 + 2);
  assert.ok(JSON.stringify(read).includes('{"kind":"strong","children":["more"]}'));
});

test('tables, headings and rules are what they look like', () => {
  const cells = (text: string) => {
    const [node] = parse(text);
    return node?.kind === 'table' ? [node.head, ...node.rows].map((row) => row.map((cell) => cell.map((one) => (typeof one === 'string' ? one : one.kind)).join(''))) : null;
  };
  assert.deepEqual(cells('| a | b |\n|---|:-:|\n| 1 | `x|y` |\n| p\\|q || r |'), [['a', 'b'], ['1', 'code'], ['p|q', '']]);
  assert.deepEqual(cells('a|b\n-|-\n1'), [['a', 'b']]);
  assert.deepEqual(cells('a|b\n--|\n1'), null);
  assert.deepEqual(cells('a\n|--'), null);
  assert.deepEqual(parse('## a # b ##'), [{ kind: 'heading', level: 2, children: ['a # b'] }]);
  assert.deepEqual(parse('# C#'), [{ kind: 'heading', level: 1, children: ['C#'] }]);
  assert.deepEqual(parse('#x').map((node) => node.kind), ['paragraph']);
  assert.deepEqual(parse('- - -\n\n**\n\n_ _\t_').map((node) => node.kind), ['rule', 'paragraph', 'rule']);
  assert.deepEqual(parseInline('a  \nb `` c`d `` [x]( <https://a.b> "t" )'), ['a', { kind: 'break' }, 'b ', { kind: 'code', text: 'c`d' }, ' ', { kind: 'link', href: 'https://a.b', children: ['x'] }]);
});

test('colours never change the text', () => {
  const code = 'fn main<\'a>() { // x\n  let s = "a\\"b"; /* y */ 0x1f + \'c\' `t` }\n# z\n<!-- q -->';
  for (const language of ['rs', 'ts', 'py', 'sql', 'html', 'css', 'json', 'diff', 'nosuch', '']) {
    assert.equal(
      highlight(code, language)
        .map(([, text]) => text)
        .join(''),
      code,
      language,
    );
  }
  assert.ok(highlight('return x', 'js').some(([kind, text]) => kind === 'k' && text === 'return'));
});

test('code that comes bit by bit has the colours of one that is there', () => {
  const code = 'fn main<\'a>() { // x\n  let s = "a\\"b"; /* y\n */ 0x1f + \'\\u{1f980}\' `t\n` }\n# z """q\n"""\n<!-- q\n -->\n+a\n-b\n\n    \n'.repeat(800);
  for (const language of ['rs', 'ts', 'py', 'sql', 'html', 'css', 'json', 'diff', 'nosuch']) {
    const whole = new Colours().take(code, language);
    assert.equal(whole.flat().map(([, text]) => text).join(''), code);
    assert.ok(whole.length > 5 && whole.slice(0, -1).every((piece) => piece.at(-1)?.[1].endsWith('\n')), language);
    const coming = new Colours();
    for (let at = 1; at < code.length; at += 1_009) coming.take(code.slice(0, at), language);
    const settled = coming.take(code, language);
    assert.deepEqual(settled, whole);
    // What is settled is the same, not only alike.
    assert.equal(coming.take(`${code}x`, language)[1], settled[1]);
    assert.deepEqual(coming.take('x', 'ts'), [[[null, 'x']]]);
  }
});

test('no name of a language is more than a name', () => {
  for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf']) {
    assert.deepEqual(highlight('foo(1)', name), [[null, 'foo(1)']], name);
    assert.deepEqual(highlight('foo(1)', languageOf(`x.${name}`)), [[null, 'foo(1)']], name);
  }
});

test('lines that stay are told from those that change', () => {
  assert.equal(drawn('a\nb\nc\n', 'a\nx\nc\n'), ' a\n-b\n+x\n c');
  assert.equal(drawn('a\nb\nc\nd\ne', 'b\nx\nd\ny'), '-a\n b\n-c\n+x\n d\n-e\n+y');
  assert.equal(drawn('', 'a'), '+a');
  assert.equal(drawn('a\na', 'a'), ' a\n-a');
});

test('the change of a call comes from its arguments', () => {
  const edits = '{"path":"a.rs","edits":[{"old":"x","new":"y"},{"old":"p","new":"q\\nr"}]}';
  const made = ofCall('multi_edit', edits, { lines: [4, 9] });
  assert.deepEqual([made?.diff.added, made?.diff.removed, made?.isEverywhere], [3, 2, false]);
  assert.deepEqual(made?.diff.hunks.map((hunk) => hunk.start), [[4, 4], [9, 9]]);
  assert.equal(ofCall('multi_edit', edits, undefined)?.diff.hunks[0]?.start[0], 0);
  assert.equal(ofCall('edit_file', '{"path":"a","old":"x","new":"y","replace_all":true}', undefined)?.isEverywhere, true);
  assert.equal(ofCall('edit_file', '{"path":', undefined), null);
  assert.equal(ofCall('bash', '{}', undefined), null);
});

test('numbers are short and names are clean', () => {
  assert.deepEqual([0, 999, 1_250, 200_000, 1_050_000].map(tokens), ['0', '999', '1.2k', '200k', '1.0M']);
  assert.deepEqual([999, 61_000].map(elapsed), ['0 s', '1 min 01 s']);
  assert.deepEqual([0, 999, 1_500, 48_210].map(size), ['0 B', '999 B', '1.5 kB', '48.2 kB']);
  // As git and the command line quote them.
  assert.equal(pathText('plain name é.txt'), 'plain name é.txt');
  assert.equal(pathText('a\nb\u202e'), '"a\\nb\\342\\200\\256"');
  assert.equal(pathText({ bytes: btoa('a\xff') }), '"a\\377"');
  assert.equal(pathText('say "no"'), '"say \\"no\\""');
  // What is not seen, or looks like something else.
  assert.equal(pathText('\u200b.txt'), '"\\342\\200\\213.txt"');
  for (const odd of ['\u00ad', '\u3164', '\ufeff', '\u200d', '\u00a0', '\u{e0041}', '\ufe0f']) assert.match(pathText(`a${odd}b`), /^"a[\\\d]+b"$/);
  assert.deepEqual([pathText(' a'), pathText('a '), pathText('a b')], ['" a"', '"a "', 'a b']);
  assert.equal(plainOutput('\u001b[31mred\u001b[0m 10%\r100%\nx'), '100%\nx');
});

test('what was done is said in words, without ids', () => {
  assert.equal(operationName('turn mend add'), 'turn “mend add”');
  assert.equal(operationName('rewind 45aa7bfc before "really mend"'), 'rewind to before “really mend”');
  assert.equal(operationName('rewind 45aa7bfc'), 'rewind to 45aa7bfc');
  assert.equal(operationName('summary up to "mend"'), 'summary up to “mend”');
  assert.equal(operationName('clear'), 'clear');
  const file = (path: string, status: string, action = 'restore') => ({ path, action, status, certainty: null });
  const conflict = (path: string, choice: 'keep' | 'merge') => ({ path, why: '', text: '', choices: [], choice });
  const document = {
    files: [file('a', 'done'), file('b', 'done', 'delete'), file('c', 'done'), file('d', 'kept')],
    conflicts: [conflict('c', 'merge'), conflict('d', 'keep')],
  } as unknown as RewindDocument;
  assert.equal(inFiles(document), '1 file restored, 1 deleted, 1 merged, 1 kept as it is');
  assert.equal(inFiles({ ...document, files: [], conflicts: [] }), 'no files changed');
});

test('marks that turn text around or are not seen are shown as such', () => {
  const odd = 'a\u202eb\u2066c\u200bd\u061ce\u2028f\ufeffg\u0007h';
  const seen = 'a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffdg\ufffdh';
  assert.equal(clean(`${odd}\n\t`), `${seen}\ufffd\ufffd`);
  assert.equal(cleanLines(`${odd}\n\t`), `${seen}\n\t`);
});

test('nothing of the page makes HTML of text', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name) && !name.startsWith('tests'));
  for (const name of files) {
    assert.doesNotMatch(readFileSync(`src/${name}`, 'utf8'), /innerHTML|outerHTML|dangerouslySet|insertAdjacentHTML|document\.write|\beval\(|new Function/, name);
  }
});
