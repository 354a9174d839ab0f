import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { type FlatHeaders, sendHead } from '../answer/send.ts';
import type { Exchange } from '../exchange.ts';

/**
 * Passes an answer on as it comes in, no faster than the client takes it. One that breaks off breaks off for the client
 * too.
 */
export async function relayAnswer(exchange: Exchange, answer: IncomingMessage, headers: FlatHeaders): Promise<void> {
  const { request, response, requestId } = exchange;
  headers.push('Audit-Id', requestId);
  if (exchange.closeConnection && request.httpVersionMajor === 1) headers.push('Connection', 'close');
  if (!sendHead(exchange, answer.statusCode ?? 502, headers)) {
    answer.destroy();
    return;
  }
  if (request.method === 'HEAD') {
    answer.destroy();
    response.end();
    return;
  }
  // Whoever follows something silent knows at once that it was found.
  response.flushHeaders();
  try {
    const done = pipeline(answer, response);
    answer.on('data', (chunk: Buffer) => {
      exchange.sentBytes += chunk.length;
    });
    await done;
  } catch {
    response.destroy();
  }
}
