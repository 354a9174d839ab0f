import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { RegistryBehaviour } from './registry-behaviour.ts';

/** Writes a blob according to the current behaviour. `changed` resolves when the behaviour is replaced. */
export async function writeBody(
  response: ServerResponse,
  bytes: Buffer,
  behaviour: () => RegistryBehaviour,
  changed: () => Promise<unknown>,
): Promise<void> {
  const gone = once(response, 'close');
  let sent = 0;
  while (sent < bytes.length && !response.destroyed) {
    const {
      stallAfter = Number.POSITIVE_INFINITY,
      cutAfter = Number.POSITIVE_INFINITY,
      slow,
      wrongDigest,
    } = behaviour();
    if (sent >= cutAfter) {
      response.destroy();
      return;
    }
    if (sent >= stallAfter) {
      // Written bytes must be sent before the pause.
      response.flushHeaders();
      await Promise.race([changed(), gone]);
      continue;
    }
    const end = Math.min(bytes.length, sent + (slow?.chunkBytes ?? 65_536), stallAfter, cutAfter);
    const piece = bytes.subarray(sent, end);
    const ready = response.write(wrongDigest ? piece.map((byte) => byte ^ 1) : piece);
    sent = end;
    if (!ready) await Promise.race([once(response, 'drain'), gone]);
    if (slow !== undefined) await Promise.race([new Promise((resolve) => setTimeout(resolve, slow.everyMs)), gone]);
  }
  response.end();
  await gone;
}
