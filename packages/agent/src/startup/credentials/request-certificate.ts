import { createHash } from 'node:crypto';
import { Backoff, isConnectionError } from '@keelson/client';
import { type ApiClient, type Clock, isStatusError, type Logger, StatusReason } from '@keelson/core';
import { CertificateSigningRequest } from '@keelson/kinds';
import { requestForNode } from './certificate-request.ts';
import { type ClientCertificate, clientCertificate } from './client-certificate.ts';

export interface CertificateOrderOptions {
  readonly client: ApiClient;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** A certificate was asked for and will not be given. */
export class CertificateRefusedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CertificateRefusedError';
  }
}

const firstPollMs = 100;
const maxPollMs = 10_000;
const hashLength = 40;

/**
 * The same request has the same name, so that it is not made twice when nobody knows whether the first attempt arrived.
 */
function manifest(request: string): CertificateSigningRequest {
  const name = `node-csr-${createHash('sha256').update(request).digest('hex').slice(0, hashLength)}`;
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: Buffer.from(request, 'utf8').toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'key encipherment', 'client auth'],
    },
  };
}

/** No answer, or one that says that there will be one later. */
export function isPassing(error: unknown): boolean {
  return isConnectionError(error) || (isStatusError(error) && (error.code === 429 || error.code >= 500));
}

/** Why nothing will come of the request; undefined while something may. */
function refusal({ metadata, status }: CertificateSigningRequest): string | undefined {
  const condition = status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed');
  if (condition === undefined) return undefined;
  const why = condition.message || condition.reason || 'no reason was given';
  return `the certificate signing request ${metadata?.name} was ${condition.type === 'Denied' ? 'denied' : 'not signed'}: ${why}`;
}

/**
 * Makes a key, asks for a client certificate of the node, and waits for it, however long the approval takes and also
 * while the server is away.
 *
 * @returns undefined when the signal aborted before
 * @throws CertificateRefusedError when it was denied or could not be signed; StatusError for what the server refuses
 *   otherwise
 */
export async function requestCertificate(options: CertificateOrderOptions): Promise<ClientCertificate | undefined> {
  const { client, nodeName, clock, logger, signal } = options;
  const { key, request } = await requestForNode(nodeName);
  const wanted = manifest(request);
  const name = wanted.metadata?.name ?? '';
  const requests = client.resource(CertificateSigningRequest);
  const backoff = new Backoff(clock, firstPollMs, maxPollMs);
  let created = false;
  let told = '';
  while (!signal.aborted) {
    try {
      if (!created) {
        await requests.create(wanted, { signal }).catch(existingIsFine);
        created = true;
        logger.info('asked for a client certificate', { request: name });
      }
      const seen = await requests.get(name, { signal });
      const why = refusal(seen);
      if (why !== undefined) throw new CertificateRefusedError(why);
      if (seen.status?.certificate) return issued(seen.status.certificate, key, name);
    } catch (error) {
      if (signal.aborted) return undefined;
      if (!isPassing(error)) throw error;
      const { message } = error as Error;
      if (message !== told) logger.warn('the API server cannot be asked for a certificate now', { problem: message });
      told = message;
    }
    await backoff.wait(signal);
  }
  return undefined;
}

function existingIsFine(error: unknown): void {
  if (!isStatusError(error, StatusReason.AlreadyExists)) throw error;
}

function issued(base64: string, key: string, name: string): ClientCertificate {
  const made = clientCertificate(Buffer.from(base64, 'base64').toString('utf8'), key);
  if (made === undefined)
    throw new CertificateRefusedError(`the certificate of the request ${name} is not of the key that asked`);
  return made;
}
