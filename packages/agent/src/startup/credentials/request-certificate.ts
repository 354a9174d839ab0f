import { createHash } from 'node:crypto';
import { type AlternativeNames, createRequest } from '@keelson/certificates';
import { Backoff, isConnectionError } from '@keelson/client';
import { type ApiClient, isStatusError, StatusReason } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { CertificateSigningRequest } from '@keelson/kinds';
import { type ClientCertificate, clientCertificate } from './client-certificate.ts';

export interface CertificateOrderOptions {
  readonly client: ApiClient;
  readonly nodeName: string;
  /** Names and addresses of a serving certificate. Absent: a client certificate is requested. */
  readonly serving?: AlternativeNames;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** The API server rejects the certificate request or does not issue the certificate. */
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
 * The name is derived from the request, so that a retry after an attempt with an unknown result does not create a
 * second object.
 */
function manifest(request: string, serving: boolean): CertificateSigningRequest {
  const name = `node-csr-${createHash('sha256').update(request).digest('hex').slice(0, hashLength)}`;
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: Buffer.from(request, 'utf8').toString('base64'),
      signerName: `kubernetes.io/${serving ? 'kubelet-serving' : 'kube-apiserver-client-kubelet'}`,
      usages: ['digital signature', 'key encipherment', serving ? 'server auth' : 'client auth'],
    },
  };
}

/** True for errors that a retry may resolve: connection errors, 429 and server errors. */
export function isPassing(error: unknown): boolean {
  return isConnectionError(error) || (isStatusError(error) && (error.code === 429 || error.code >= 500));
}

/** The reason why the request will not be signed; undefined while it may be signed. */
function refusal({ metadata, status }: CertificateSigningRequest): string | undefined {
  const condition = status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed');
  if (condition === undefined) return undefined;
  const reason = condition.message || condition.reason || 'no reason was given';
  const outcome = condition.type === 'Denied' ? 'denied' : 'not signed';
  return `the certificate signing request ${metadata?.name} was ${outcome}: ${reason}`;
}

/**
 * Generates a key, requests a certificate of the node, and waits without a time limit for its approval.
 * Connection errors are retried.
 *
 * @returns undefined when the signal was aborted before the certificate was issued
 * @throws CertificateRefusedError when the request was denied or could not be signed
 * @throws StatusError when the server rejects a call
 */
export async function requestCertificate(options: CertificateOrderOptions): Promise<ClientCertificate | undefined> {
  const { client, nodeName, serving, clock, logger, signal } = options;
  const what = serving === undefined ? 'client' : 'serving';
  const subject = { organizations: ['system:nodes'], commonName: `system:node:${nodeName}` };
  const { key, request } = await createRequest(subject, serving);
  const signingRequest = manifest(request, serving !== undefined);
  const name = signingRequest.metadata?.name ?? '';
  const requests = client.resource(CertificateSigningRequest);
  const backoff = new Backoff(clock, firstPollMs, maxPollMs);
  let created = false;
  let loggedProblem = '';
  while (!signal.aborted) {
    try {
      if (!created) {
        await requests.create(signingRequest, { signal }).catch(ignoreAlreadyExists);
        created = true;
        logger.info(`requested a ${what} certificate`, { request: name });
      }
      const current = await requests.get(name, { signal });
      const reason = refusal(current);
      if (reason !== undefined) throw new CertificateRefusedError(reason);
      if (current.status?.certificate) return issuedCertificate(current.status.certificate, key, name);
    } catch (error) {
      if (signal.aborted) return undefined;
      if (!isPassing(error)) throw error;
      const { message } = error as Error;
      if (message !== loggedProblem)
        logger.warn(`the ${what} certificate cannot be requested now, will retry`, { problem: message });
      loggedProblem = message;
    }
    await backoff.wait(signal);
  }
  return undefined;
}

function ignoreAlreadyExists(error: unknown): void {
  if (!isStatusError(error, StatusReason.AlreadyExists)) throw error;
}

function issuedCertificate(base64: string, key: string, name: string): ClientCertificate {
  const certificate = clientCertificate(Buffer.from(base64, 'base64').toString('utf8'), key);
  if (certificate === undefined)
    throw new CertificateRefusedError(`the certificate of the request ${name} does not match its key`);
  return certificate;
}
