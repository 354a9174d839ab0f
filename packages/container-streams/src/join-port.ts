import type { Duplex } from 'node:stream';

/**
 * Connects a client with a port of a pod in both directions. Each direction ends separately. Resolves when all data of
 * the port was sent to the client, or the client has disconnected.
 * @throws the error of the connection to the port
 */
export function joinPort(caller: Duplex, port: Duplex): Promise<void> {
  return new Promise((resolve, reject) => {
    port.on('error', reject);
    port.once('close', () => {
      // The port may close without an end of stream.
      caller.end();
      caller.resume();
    });
    caller.once('finish', resolve);
    const onGone = () => {
      // Data that the client sent before its end may still be buffered.
      if (!port.writableEnded || !port.readableEnded) port.destroy();
      resolve();
    };
    if (caller.destroyed) onGone();
    else caller.once('close', onGone);
    caller.pipe(port);
    port.pipe(caller);
  });
}
