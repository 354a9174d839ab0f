import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createAuthority, issueCertificate } from '@keelson/certificates';

/** The part of an AdmissionReview's request that tests examine. */
export interface Review {
  readonly uid: string;
  readonly object: { metadata?: { name?: string; labels?: Record<string, string> }; [field: string]: unknown } | null;
  readonly oldObject: { metadata?: { name?: string }; [field: string]: unknown } | null;
  readonly [field: string]: unknown;
}

/** A response of a webhook, or what writes one that is no review. */
export type Answer = Record<string, unknown> | ((response: ServerResponse, review: Review) => void);

export interface WebhookServer {
  readonly port: number;
  /** Base64 of the authority's PEM. */
  readonly caBundle: string;
  readonly authority: string;
  /** Reviews by path. */
  readonly reviews: Map<string, Review[]>;
  readonly userAgents: ReadonlySet<string>;
  /** Connections so far. */
  connections(): number;
  on(path: string, answer: (review: Review) => Answer): void;
  close(): void;
}

export function patchOf(...operations: unknown[]): Record<string, unknown> {
  return { allowed: true, patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(operations)).toString('base64') };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

/** A server of webhooks on loopback, with a certificate of its own authority. */
export async function startWebhookServer(): Promise<WebhookServer> {
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
  const authority = await createAuthority('webhook-authority', validity);
  const { certificate, key } = await issueCertificate(authority, {
    ...validity,
    subject: { commonName: 'webhooks' },
    names: { dns: ['localhost', 'hook.default.svc'], ips: ['127.0.0.1'] },
    usages: ['digital signature', 'server auth'],
  });
  const answers = new Map<string, (review: Review) => Answer>();
  const reviews = new Map<string, Review[]>();
  const userAgents = new Set<string>();
  let connections = 0;
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    userAgents.add(request.headers['user-agent'] ?? '');
    const { request: review, apiVersion } = JSON.parse(await bodyOf(request)) as {
      readonly request: Review;
      readonly apiVersion: string;
    };
    reviews.set(path, [...(reviews.get(path) ?? []), review]);
    const given = answers.get(path)?.(review) ?? { allowed: true };
    if (typeof given === 'function') return given(response, review);
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ kind: 'AdmissionReview', apiVersion, response: { uid: review.uid, ...given } }));
  };
  const server = createServer({ cert: certificate, key }, (request, response) => void answer(request, response));
  server.on('secureConnection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    caBundle: Buffer.from(authority.certificate).toString('base64'),
    authority: authority.certificate,
    reviews,
    userAgents,
    connections: () => connections,
    on: (path, make) => void answers.set(path, make),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
