/** Number of bytes that a base64 text encodes. */
export function base64Bytes(text: string): number {
  let length = text.length;
  while (length > 0 && text.charCodeAt(length - 1) === 61) length--;
  return Math.floor((length * 3) / 4);
}
