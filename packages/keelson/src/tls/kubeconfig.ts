import { join } from 'node:path';
import type { KeyPair } from '@keelson/certificates';
import type { Logger } from '@keelson/core/runtime';
import { writePrivateFile } from '../base/private-file.ts';
import type { Credentials } from './credentials.ts';

/** Address and credentials for clients; `credentials` undefined: plain HTTP. */
export interface KubeconfigOptions {
  readonly url: string;
  readonly credentials: Credentials | undefined;
}

/** File name of the administrator's kubeconfig in the data directory. */
export const kubeconfigFile = 'kubeconfig';

/** The user of a kubeconfig. */
type KubeconfigUser = 'admin' | 'bootstrap';

const base64 = (text: string): string => Buffer.from(text, 'utf8').toString('base64');

/** A kubeconfig with one cluster, one user and one context, as JSON (which is YAML). */
export function kubeconfigText({ url, credentials }: KubeconfigOptions, name: KubeconfigUser = 'admin'): string {
  return userKubeconfig({
    ...{ url, name },
    ...(credentials ? { authority: credentials.authority, pair: credentials[name] } : {}),
  });
}

/** Address of a server and a user for {@link userKubeconfig}. */
export interface UserKubeconfigOptions {
  readonly url: string;
  /** Certificate of the authority; absent: plain HTTP. */
  readonly authority?: string;
  readonly name: string;
  /** Client certificate of the user. */
  readonly pair?: KeyPair;
  /** Bearer token of the user. */
  readonly token?: string;
  /** Default namespace. */
  readonly namespace?: string;
}

/** A kubeconfig for a user with a client certificate or a token, as JSON (which is YAML). */
export function userKubeconfig({ url, authority, name, pair, token, namespace }: UserKubeconfigOptions): string {
  // The JavaScript client uses plain HTTP only when verification is disabled.
  const trust =
    authority === undefined
      ? { 'insecure-skip-tls-verify': true }
      : { 'certificate-authority-data': base64(authority) };
  const cluster = { server: url, ...trust };
  const user = {
    ...(pair && { 'client-certificate-data': base64(pair.certificate), 'client-key-data': base64(pair.key) }),
    ...(token === undefined ? {} : { token }),
  };
  const context = { cluster: 'keelson', user: name, ...(namespace === undefined ? {} : { namespace }) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'keelson', cluster }],
    users: [{ name, user }],
    contexts: [{ name: 'keelson', context }],
    'current-context': 'keelson',
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

/**
 * Writes `DATA/kubeconfig`, readable by its owner only, and returns its path. With credentials it also writes
 * `DATA/bootstrap.kubeconfig`, with which nodes join.
 */
export async function writeKubeconfig(data: string, options: KubeconfigOptions, logger?: Logger): Promise<string> {
  const path = join(data, kubeconfigFile);
  await writePrivateFile(path, kubeconfigText(options), logger);
  if (options.credentials !== undefined) {
    await writePrivateFile(join(data, 'bootstrap.kubeconfig'), kubeconfigText(options, 'bootstrap'), logger);
  }
  return path;
}
