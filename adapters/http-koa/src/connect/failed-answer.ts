import type { IncomingMessage } from 'node:http';
import { type StatusError, statusErrors } from '@keelson/core';
import type { UpstreamCall } from './find-upstream.ts';

/** More than this of a failure nobody reads. */
const textLimit = 16 * 1024;

async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= textLimit) break;
    }
  } catch {
    // The code says enough.
  }
  answer.destroy();
  return Buffer.concat(chunks).subarray(0, textLimit).toString().trim();
}

/** True when an agent says in plain words that something is wrong. */
export function isPlainFailure({ statusCode = 0, headers }: IncomingMessage): boolean {
  return statusCode >= 400 && !(headers['content-type'] ?? '').startsWith('application/json');
}

/**
 * What an agent said, as a Status. That it does not let this server in is no failure of the client, who would look for it in its own
 * credentials.
 */
export async function failedAnswer(answer: IncomingMessage, { label }: UpstreamCall): Promise<StatusError> {
  const { statusCode = 500, statusMessage = '' } = answer;
  const text = (await textOf(answer)) || statusMessage;
  if (statusCode === 401 || statusCode === 403) {
    return statusErrors.serviceUnavailable(`${label} refuses this server with ${statusCode}: ${text}`);
  }
  return statusErrors.relayed(statusCode, text);
}
