import type { IncomingMessage } from 'node:http';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import type { Logger } from '@keelson/core/runtime';
import { type Caller, HttpProblem } from '../http/request.ts';
import type { ReviewToken } from './token-reviews.ts';

const anonymous: Caller = { name: 'system:anonymous', groups: ['system:unauthenticated'], anonymous: true };
const refused = () => new HttpProblem(401, 'Unauthorized');

const words = (value: string | string[] | undefined): string[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

/** Undefined when the connection has no certificate. */
function certificateOf(socket: Partial<TLSSocket>): PeerCertificate | undefined {
  const certificate = socket.getPeerCertificate?.();
  return certificate?.raw === undefined ? undefined : certificate;
}

/** Undefined without a bearer token; '' for an invalid one. */
function bearerToken({ headers: { authorization = '' } }: IncomingMessage): string | undefined {
  const found = /^\s*bearer(?:\s+(\S+)\s*$|\s|$)/i.exec(authorization);
  return found === null ? undefined : (found[1] ?? '');
}

/** Authenticates a request. @throws HttpProblem 401 */
export type Identify = (incoming: IncomingMessage) => Promise<Caller>;

export interface IdentifyOptions {
  readonly anonymousAuth: boolean;
  /** Client certificates are requested. */
  readonly clientCertificates: boolean;
  /** Undefined: bearer tokens are ignored. */
  readonly reviewToken: ReviewToken | undefined;
  readonly logger: Logger;
}

/**
 * Authenticates by a client certificate of the authorities of --client-ca-file, otherwise by a bearer token that the
 * API server accepts, otherwise as anonymous if --anonymous-auth is on. An invalid credential is rejected; its client
 * does not become anonymous.
 */
export function identifier({ anonymousAuth, clientCertificates, reviewToken, logger }: IdentifyOptions): Identify {
  async function ownerOf(token: string, review: ReviewToken): Promise<Caller> {
    const caller = await review(token).catch((error: unknown) => {
      if (error instanceof HttpProblem) throw error;
      const problem = error instanceof Error ? error.message : String(error);
      // The error of the server may contain the token, which must not be logged.
      logger.warn('reviewing a bearer token failed', { problem: problem.replaceAll(token, '(token)') });
    });
    if (caller === undefined) throw refused();
    return caller;
  }

  return async (incoming) => {
    const socket = incoming.socket as Partial<TLSSocket>;
    const certificate = clientCertificates ? certificateOf(socket) : undefined;
    if (certificate !== undefined) {
      const subject = certificate.subject as unknown as Record<string, string | string[] | undefined>;
      const [name = ''] = words(subject['CN']);
      if (!socket.authorized || name === '') throw refused();
      return { name, groups: [...words(subject['O']), 'system:authenticated'], anonymous: false };
    }
    const token = reviewToken === undefined ? undefined : bearerToken(incoming);
    if (reviewToken !== undefined && token !== undefined) {
      if (token === '') throw refused();
      return ownerOf(token, reviewToken);
    }
    if (!anonymousAuth) throw refused();
    return anonymous;
  };
}

/** Authenticates every request as anonymous, as on the read-only port. */
export const everybody: Identify = async () => anonymous;
