import type { Socket } from 'node:net';
import { type StreamUpgrade, UpgradeRefused } from '@keelson/container-streams';
import { type AgentRequest, HttpProblem } from './request.ts';

/**
 * Continues the connection of a request in another protocol.
 * @throws HttpProblem for a request without a supported protocol
 */
export async function takeOver(
  { upgrade, incoming, response }: AgentRequest,
  serve: (upgrade: StreamUpgrade) => Promise<void>,
): Promise<void> {
  if (upgrade === undefined) {
    throw new HttpProblem(400, 'unable to upgrade: the request must ask for an upgrade to a WebSocket or to SPDY/3.1');
  }
  try {
    await serve({ ...upgrade, incoming, accepted: () => response.detachSocket(upgrade.socket as Socket) });
  } catch (error) {
    if (error instanceof UpgradeRefused) throw new HttpProblem(error.status, error.message, error.headers);
    throw error;
  }
}
