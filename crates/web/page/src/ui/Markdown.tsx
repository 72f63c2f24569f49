// Markdown on the screen: nodes, never HTML.

import { useRef } from 'preact/hooks';

import type { Inline } from '../text/inline';
import { type Node, parse, Pieces } from '../text/markdown';
import { Boundary } from './Boundary';
import { Code } from './Code';
import { memo } from './memo';

/** A text; while it is coming only its last piece is read and drawn anew. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const pieces = useRef<Pieces>(null);
  pieces.current ??= new Pieces();
  return (
    <div class="md">
      {pieces.current.take(text).map((piece, at) => (piece.kind === 'plain' ? <Plain key={at} text={piece.text} /> : <Chunk key={at} text={piece.text} />))}
    </div>
  );
});

const Plain = memo(function Plain({ text }: { text: string }) {
  return <p class="plain" dir="auto">{text.trimEnd()}</p>;
});

const Chunk = memo(function Chunk({ text }: { text: string }) {
  return (
    <Boundary of={text} plain={() => text}>
      <Blocks text={text} />
    </Boundary>
  );
});

function Blocks({ text }: { text: string }) {
  return <>{parse(text).map(block)}</>;
}

function block(node: Node, key: number) {
  switch (node.kind) {
    case 'heading': {
      // The page has its own first headings.
      const Tag = `h${Math.min(6, node.level + 2)}` as 'h3';
      return <Tag key={key} dir="auto">{node.children.map(inline)}</Tag>;
    }
    case 'paragraph':
      return <p key={key} dir="auto">{node.children.map(inline)}</p>;
    case 'code':
      return <Code key={key} text={node.text} language={node.language} />;
    case 'quote':
      return <blockquote key={key}>{node.children.map(block)}</blockquote>;
    case 'list': {
      const items = node.items.map((item, at) => (
        <li key={at} class={item.checked === null ? undefined : 'task'}>
          {item.checked === null ? null : <input type="checkbox" checked={item.checked} disabled aria-label={item.checked ? 'done' : 'open'} />}
          {item.children.map((child, index) =>
            child.kind === 'paragraph' && index === 0 ? <span key={index}>{child.children.map(inline)}</span> : block(child, index),
          )}
        </li>
      ));
      return node.start === null ? <ul key={key} dir="auto">{items}</ul> : <ol key={key} dir="auto" start={node.start}>{items}</ol>;
    }
    case 'table':
      return (
        <div key={key} class="table" tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead>
              <tr>
                {node.head.map((cell, at) => (
                  <th key={at} dir="auto" class={node.align[at] ?? undefined}>
                    {cell.map(inline)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {node.rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, at) => (
                    <td key={at} dir="auto" class={node.align[at] ?? undefined}>
                      {cell.map(inline)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case 'rule':
      return <hr key={key} />;
  }
}

function inline(node: Inline, key: number) {
  if (typeof node === 'string') return node;
  switch (node.kind) {
    case 'code':
      return <code key={key}>{node.text}</code>;
    case 'strong':
      return <strong key={key}>{node.children.map(inline)}</strong>;
    case 'em':
      return <em key={key}>{node.children.map(inline)}</em>;
    case 'del':
      return <del key={key}>{node.children.map(inline)}</del>;
    case 'break':
      return <br key={key} />;
    case 'link':
      return node.href === null ? (
        <span key={key}>{node.children.map(inline)}</span>
      ) : (
        <a key={key} href={node.href} target="_blank" rel="noopener noreferrer nofollow">
          {node.children.map(inline)}
        </a>
      );
  }
}
