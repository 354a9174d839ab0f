/** A token of a label selector. `end` has no text. */
export interface LabelToken {
  readonly type: 'word' | 'operator' | 'end';
  readonly text: string;
}

const token = /[ \t\r\n]*(?:([^ \t\r\n=!(),<>]+)|(==|!=|[=!(),<>]))?/y;

/** Splits a selector into tokens, without white space. The last token is `end`. */
export function labelTokens(text: string): LabelToken[] {
  const tokens: LabelToken[] = [];
  token.lastIndex = 0;
  while (token.lastIndex < text.length) {
    const [, word, operator] = token.exec(text) ?? [];
    if (word !== undefined) tokens.push({ type: 'word', text: word });
    else if (operator !== undefined) tokens.push({ type: 'operator', text: operator });
  }
  tokens.push({ type: 'end', text: '' });
  return tokens;
}
