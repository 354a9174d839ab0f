/** The text, or its beginning and `...` when it has more than `max` UTF-16 units. A surrogate pair is never divided. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return `${text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max)}...`;
}
