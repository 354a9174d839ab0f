/** Headers of one connection: RFC 9110, 7.6.1. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/**
 * Whether a proxy must not forward a header.
 *
 * @param connection The header `Connection`, which names further headers of the connection.
 */
export function hopByHopHeaders(connection: string | undefined): (lowerCaseName: string) => boolean {
  if (connection === undefined) return (name) => hopByHop.has(name);
  const named = new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
  return (name) => hopByHop.has(name) || named.has(name);
}
