import { X509Certificate } from 'node:crypto';
import { chmod } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { AlternativeNames, KeyPair } from '@keelson/certificates';
import { replaceFile } from '@keelson/container-host';
import type { ApiClient } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { Node } from '@keelson/kinds';
import { agentName } from '../../base/agent-name.ts';
import { CertificateRotation } from './certificate-rotation.ts';
import { type ClientCertificate, clientCertificate } from './client-certificate.ts';

export interface ServingRotationOptions {
  readonly client: ApiClient;
  readonly nodeName: string;
  readonly certDir: string;
  /** The pair that is served first. */
  readonly first: KeyPair;
  /** Serves a pair to new connections. */
  readonly serve: (pair: KeyPair) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

/** The addresses that the node has reported: the certificate is approved for no others. @throws Error without any */
async function reportedNames(client: ApiClient, nodeName: string): Promise<AlternativeNames> {
  const { status } = await client.resource(Node).get(nodeName);
  const names = [...new Set((status?.addresses ?? []).map(({ address }) => address))];
  if (names.length === 0) throw new Error('the node has not reported an address yet');
  return { dns: names.filter((name) => isIP(name) === 0), ips: names.filter((name) => isIP(name) !== 0) };
}

/** A self-signed pair counts as expired, so that it is replaced immediately. */
function shownPair({ certificate, key }: KeyPair): ClientCertificate {
  const { issuer, subject } = new X509Certificate(certificate);
  const parsed = clientCertificate(certificate, key);
  if (parsed === undefined || issuer === subject) return { certificate, key, notBeforeMs: 0, notAfterMs: 0 };
  return parsed;
}

/**
 * Replaces the self-signed serving certificate by one that the API server issues for the addresses of the node, and
 * renews it. Until it is issued, and when it is refused, the agent serves the previous one.
 */
export function rotateServing(options: ServingRotationOptions): CertificateRotation {
  const { client, nodeName, certDir, serve, clock, logger, random } = options;
  let current = shownPair(options.first);
  const rotation = new CertificateRotation({
    client,
    shown: {
      certificate: async () => current,
      show: (next) => {
        current = next;
        serve(next);
      },
    },
    store: {
      async keep({ certificate, key }) {
        const path = join(certDir, `${agentName}.crt`);
        await replaceFile(join(certDir, `${agentName}.key`), key);
        await replaceFile(path, certificate);
        await chmod(path, 0o644);
      },
    },
    names: () => reportedNames(client, nodeName),
    nodeName,
    clock,
    logger,
    random,
  });
  rotation.failed.catch((err: unknown) => logger.warn('the serving certificate is not renewed any more', { err }));
  return rotation;
}
