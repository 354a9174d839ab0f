import type { Duplex } from 'node:stream';

/**
 * Connects a caller with a port of a pod, in both directions, of which each ends by itself. Resolves when the caller
 * has been given all that came from the port, or has gone. @throws what broke the connection to the port
 */
export function joinPort(caller: Duplex, port: Duplex): Promise<void> {
  return new Promise((resolve, reject) => {
    port.on('error', reject);
    port.once('close', () => {
      // It may have gone without an end.
      caller.end();
      caller.resume();
    });
    caller.once('finish', resolve);
    const onGone = () => {
      // What the caller said before its end may still be on its way.
      if (!port.writableEnded || !port.readableEnded) port.destroy();
      resolve();
    };
    if (caller.destroyed) onGone();
    else caller.once('close', onGone);
    caller.pipe(port);
    port.pipe(caller);
  });
}
