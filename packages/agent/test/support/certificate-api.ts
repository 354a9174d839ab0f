import { writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { createAuthority, readCertificateRequest, signCertificate } from '@keelson/certificates';
import { FakeClock } from '@keelson/core/runtime';
import type { CertificateSigningRequest } from '@keelson/kinds';
import { listeningLogger, temporaryDirectory } from '@keelson/test-support';
import type { ExecutionContext } from 'ava';
import { createSelfSigned } from '../../src/serve/serving-certificate.ts';

const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

/**
 * What becomes of requests: they are issued, left waiting or turned down, the caller is not known, or the connection
 * breaks.
 */
export type Behaviour = 'issue' | 'wait' | 'deny' | 'fail' | 'unauthorized' | 'away';

/** A server of certificate signing requests, and a directory for an agent that uses it. */
export interface CertificateApi {
  behaviour: Behaviour;
  /** How long the next certificate is good for, from now on. */
  lifetimeMs: number;
  readonly directory: string;
  readonly bootstrap: string;
  readonly clock: FakeClock;
  readonly logger: ReturnType<typeof listeningLogger>;
  readonly requests: ReadonlyMap<string, CertificateSigningRequest>;
  /** Method, path, and the serial number of the client's certificate, of every request. */
  readonly seen: readonly { readonly method: string; readonly path: string; readonly serial: string }[];
  /** A config file of the form that agents have, with this certificate. */
  config(certificate: { readonly certificate: string; readonly key: string }): string;
}

/** Opens a server and writes a bootstrap file for it. */
export async function certificateApi(t: ExecutionContext): Promise<CertificateApi> {
  const clock = new FakeClock(Date.now());
  const lasting = { notBefore: new Date(0), notAfter: new Date('2999-12-31T00:00:00Z') };
  const [directory, serving, joining, authority] = await Promise.all([
    temporaryDirectory(t),
    createSelfSigned(['localhost', '127.0.0.1'], clock.now()),
    createSelfSigned(['joining'], clock.now()),
    createAuthority('test', lasting),
  ]);
  const requests = new Map<string, CertificateSigningRequest>();
  const seen: { method: string; path: string; serial: string }[] = [];

  const issue = async ({ spec }: CertificateSigningRequest): Promise<string> => {
    const { publicKey } = readCertificateRequest(Buffer.from(spec.request, 'base64').toString());
    const certificate = signCertificate(authority, publicKey, {
      subject: { organizations: ['system:nodes'], commonName: 'system:node:node-1' },
      usages: ['digital signature', 'client auth'],
      notBefore: new Date(clock.now()),
      notAfter: new Date(clock.now() + api.lifetimeMs),
    });
    return Buffer.from(certificate).toString('base64');
  };

  const send = (response: ServerResponse, value: unknown, code = 200) =>
    response.writeHead(code, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
  const refuse = (response: ServerResponse, code: number, reason: string) =>
    send(response, { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: reason, reason, code }, code);

  const answer = async ({ method, url = '' }: IncomingMessage, response: ServerResponse, body: string) => {
    const { behaviour } = api;
    if (behaviour === 'away') return response.destroy();
    if (behaviour === 'unauthorized') return refuse(response, 401, 'Unauthorized');
    if (!url.startsWith(path)) {
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } };
      if (!url.includes('watch=')) return send(response, node);
      response.writeHead(200, { 'Content-Type': 'application/json' });
      return response.write(`${JSON.stringify({ type: 'ADDED', object: node })}\n`);
    }
    if (method === 'POST') {
      const request = JSON.parse(body) as CertificateSigningRequest;
      requests.set(request.metadata?.name ?? '', request);
      return send(response, request, 201);
    }
    const request = requests.get(url.slice(path.length + 1));
    if (request === undefined) return refuse(response, 404, 'NotFound');
    if (behaviour === 'wait') return send(response, request);
    if (behaviour === 'issue') request.status ??= { certificate: await issue(request) };
    const type = behaviour === 'deny' ? 'Denied' : 'Failed';
    const decided = { conditions: [{ type, status: 'True', message: 'not you' }] };
    return send(response, { ...request, status: behaviour === 'issue' ? request.status : decided });
  };

  const server = createServer(
    { cert: serving.certificate, key: serving.key, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      const serial = (request.socket as TLSSocket).getPeerCertificate().serialNumber ?? '';
      seen.push({ method: request.method ?? '', path: request.url ?? '', serial });
      let body = '';
      request.on('data', (chunk: Buffer) => {
        body += String(chunk);
      });
      request.on('end', () => void answer(request, response, body));
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const api: CertificateApi = {
    behaviour: 'issue',
    lifetimeMs: 3_600_000,
    directory,
    bootstrap: join(directory, 'bootstrap'),
    clock,
    logger: listeningLogger(),
    requests,
    seen,
    config: ({ certificate, key }) =>
      JSON.stringify({
        'current-context': 'a',
        contexts: [{ name: 'a', context: { cluster: 'c', user: 'u' } }],
        clusters: [
          {
            name: 'c',
            cluster: {
              server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
              'certificate-authority-data': base64(serving.certificate),
            },
          },
        ],
        users: [
          { name: 'u', user: { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) } },
        ],
      }),
  };
  await writeFile(api.bootstrap, api.config(joining));
  return api;
}
