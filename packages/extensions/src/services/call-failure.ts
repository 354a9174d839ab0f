import { JsonRequestError } from '@keelson/client';
import { isStatusError } from '@keelson/core';
import { printableText } from '@keelson/core/internal';
import type { ResolveService } from './resolve-service.ts';

/** The name by which webhooks know a kube-apiserver. */
export const webhookHeaders = { 'User-Agent': 'kube-apiserver-admission' } as const;

/** The address of the service of a webhook. @throws AnswerError with the URL, when the service cannot be resolved */
export async function resolvedFor(url: string, address: ReturnType<ResolveService>): ReturnType<ResolveService> {
  try {
    return await address;
  } catch (error) {
    if (!isStatusError(error)) throw error;
    throw new AnswerError(`Post ${JSON.stringify(url)}: ${error.message}`, error.code);
  }
}

/** A failure of a call, with its text. */
export class AnswerError extends Error {
  readonly code: number;

  constructor(message: string, code: number) {
    super(message);
    this.code = code;
  }
}

/** The text of a failed call, as in kube-apiserver, and the code that represents it in metrics. */
export function failureOf(error: unknown): { readonly reason: string; readonly code: number } {
  if (error instanceof AnswerError) return { reason: error.message, code: error.code };
  if (isStatusError(error)) return { reason: error.message, code: error.code };
  if (!(error instanceof JsonRequestError))
    return { reason: printableText(String((error as Error).message)), code: 503 };
  const at = error.message.indexOf(': ');
  const url = JSON.stringify(error.message.slice(0, at));
  return { reason: `Post ${url}: ${networkText(error, error.message.slice(at + 2))}`, code: 503 };
}

const untrusted: ReadonlySet<string> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]);

/** Texts of common network failures as in kube-apiserver, because users search for these texts. */
function networkText({ late, cause }: JsonRequestError, text: string): string {
  if (late) return 'context deadline exceeded';
  const {
    code = '',
    address,
    port,
    hostname,
  } = (cause ?? {}) as NodeJS.ErrnoException & {
    readonly address?: string;
    readonly port?: number;
    readonly hostname?: string;
  };
  const dial =
    address === undefined ? 'dial tcp' : `dial tcp ${address.includes(':') ? `[${address}]` : address}:${port}`;
  if (code === 'ECONNREFUSED') return `${dial}: connect: connection refused`;
  if (code === 'EHOSTUNREACH') return `${dial}: connect: no route to host`;
  if (code === 'ENETUNREACH') return `${dial}: connect: network is unreachable`;
  if (code === 'ENOTFOUND') return `dial tcp: lookup ${hostname}: no such host`;
  if (code === 'ECONNRESET') return 'EOF';
  if (untrusted.has(code)) return 'tls: failed to verify certificate: x509: certificate signed by unknown authority';
  if (code === 'CERT_HAS_EXPIRED')
    return 'tls: failed to verify certificate: x509: certificate has expired or is not yet valid';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `tls: failed to verify certificate: x509: ${printableText(text)}`;
  return printableText(text);
}
