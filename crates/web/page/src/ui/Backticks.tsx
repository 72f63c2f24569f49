// Text with names in backticks, as Retake writes it: the names are set apart, without the backticks.

export function Backticks({ text }: { text: string }) {
  const pieces = text.split('`');
  // One without its other half is only a character.
  if (pieces.length % 2 === 0) return <>{text}</>;
  return <>{pieces.map((piece, at) => (at % 2 === 0 ? piece : <code key={at}>{piece}</code>))}</>;
}
