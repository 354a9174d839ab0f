import type { IncomingMessage } from 'node:http';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import type { Logger } from '@keelson/core';
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

/** Undefined when no bearer token is shown; '' for one that cannot be any. */
function bearerToken({ headers: { authorization = '' } }: IncomingMessage): string | undefined {
  const found = /^\s*bearer(?:\s+(\S+)\s*$|\s|$)/i.exec(authorization);
  return found === null ? undefined : (found[1] ?? '');
}

/** Finds out who asks. @throws HttpProblem 401 */
export type Identify = (incoming: IncomingMessage) => Promise<Caller>;

export interface IdentifyOptions {
  readonly anonymousAuth: boolean;
  /** Certificates are asked for. */
  readonly clientCertificates: boolean;
  /** Absent: bearer tokens mean nothing. */
  readonly reviewToken: ReviewToken | undefined;
  readonly logger: Logger;
}

/**
 * Finds out who asks: by a client certificate of the authorities of --client-ca-file, else by a bearer token that the
 * API server knows, else nobody in particular where --anonymous-auth allows that. What is shown and cannot be verified
 * is refused; it does not make its owner anonymous.
 */
export function identifier({ anonymousAuth, clientCertificates, reviewToken, logger }: IdentifyOptions): Identify {
  async function ownerOf(token: string, review: ReviewToken): Promise<Caller> {
    const caller = await review(token).catch((error: unknown) => {
      if (error instanceof HttpProblem) throw error;
      const problem = error instanceof Error ? error.message : String(error);
      // Whatever a server says of a token, the token itself is for nobody's eyes.
      logger.warn('a bearer token could not be reviewed', { problem: problem.replaceAll(token, '(token)') });
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

/** Nobody is asked, as on the read-only port. */
export const everybody: Identify = async () => anonymous;
