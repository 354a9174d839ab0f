import type { IncomingHttpHeaders, IncomingMessage, Server } from 'node:http';

function announcesBody({ 'transfer-encoding': coding, 'content-length': length }: IncomingHttpHeaders): boolean {
  return coding !== undefined || (length !== undefined && length !== '0');
}

/**
 * Serves requests that have a body and ask for an upgrade of their connection as if they did not ask, which RFC 9110,
 * section 7.8 permits. To be called for each server with a listener for `upgrade`.
 *
 * Node 26 parses the body of such a request, and passes a stream in place of the socket to the listener: members of a
 * socket are missing, and bytes of the other protocol follow the body. The option exists since Node 24.9; earlier
 * versions pass the body as the first bytes of the other protocol.
 */
export function declineUpgradesWithBody(server: Server): void {
  Object.assign(server, { shouldUpgradeCallback: ({ headers }: IncomingMessage) => !announcesBody(headers) });
}
