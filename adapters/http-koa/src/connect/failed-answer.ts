import type { IncomingMessage } from 'node:http';
import { printableText, type StatusError, statusErrors } from '@keelson/core';
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

/** The message of a Status, or the text as it came. */
function messageOf(text: string, { headers }: IncomingMessage): string {
  if (!(headers['content-type'] ?? '').startsWith('application/json')) return text;
  try {
    const { kind, message } = JSON.parse(text) as { kind?: unknown; message?: unknown };
    return kind === 'Status' && typeof message === 'string' ? message : text;
  } catch {
    return text;
  }
}

/**
 * A failure of an agent, as a Status. When the agent does not accept this server, the client's credentials are not the
 * cause, so that the code is 503.
 */
export async function failedAnswer(answer: IncomingMessage, { label }: UpstreamCall): Promise<StatusError> {
  const { statusCode = 500, statusMessage = '' } = answer;
  const text = printableText(messageOf((await textOf(answer)) || statusMessage, answer)).trim();
  if (statusCode === 401 || statusCode === 403 || statusCode === 407) {
    return statusErrors.serviceUnavailable(`${label} refuses this server with ${statusCode}: ${text}`);
  }
  return statusErrors.relayed(statusCode, text);
}
