import { createHttpClient, type HttpClientOptions, kubeconfigAccess, loadKubeconfig } from '@keelson/client';
import { replaceFile } from '@keelson/container-host';
import { isStatusError } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import type { Clock, Logger } from '@keelson/core/runtime';
import { agentName } from '../../base/agent-name.ts';
import type { AgentConfig, ApiAccessConfig } from '../../base/config/agent-config.ts';
import { CertificateStore } from './certificate-store.ts';
import { type ClientCertificate, clientCertificate, laterOf } from './client-certificate.ts';
import { CertificateRefusedError, requestCertificate } from './request-certificate.ts';

export interface JoinClusterOptions {
  readonly config: Pick<AgentConfig, 'nodeName' | 'api'> & { readonly server: Pick<AgentConfig['server'], 'certDir'> };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

async function accessOf(path: string): Promise<HttpClientOptions> {
  return (await kubeconfigAccess(await loadKubeconfig({ path }))).options;
}

/**
 * Returns the reason why the client config cannot be used; undefined when it can. A file without a client certificate
 * has other credentials, which are assumed to be valid.
 */
async function problemOf(api: ApiAccessConfig, store: CertificateStore, nowMs: number): Promise<string | undefined> {
  try {
    const { clientCertificate: certificate, clientKey: key } = await accessOf(api.clusterconfig);
    if (certificate === undefined || key === undefined) return undefined;
    const given = clientCertificate(String(certificate), String(key));
    const newest = api.rotateCertificates ? laterOf(await store.current(), given) : given;
    if (newest === undefined) return 'its client certificate and key do not match';
    return newest.notAfterMs > nowMs
      ? undefined
      : `its client certificate expired at ${new Date(newest.notAfterMs).toISOString()}`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** The client config of an agent that has joined: the server of the bootstrap file and the current certificate. */
function configText(
  { server, ca, tlsServerName, insecureSkipTlsVerify }: HttpClientOptions,
  certificatePath: string,
): string {
  const cluster = {
    server,
    ...(ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
    ...(tlsServerName === undefined ? {} : { 'tls-server-name': tlsServerName }),
    ...(insecureSkipTlsVerify ? { 'insecure-skip-tls-verify': true } : {}),
  };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'cluster', cluster }],
    users: [{ name: agentName, user: { 'client-certificate': certificatePath, 'client-key': certificatePath } }],
    contexts: [{ name: 'default', context: { cluster: 'cluster', user: agentName } }],
    'current-context': 'default',
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

/**
 * Requests a certificate with the credentials of the bootstrap file.
 *
 * @throws CertificateRefusedError when the API server rejects the request or does not issue the certificate
 */
async function bootstrapCertificate(
  access: HttpClientOptions,
  options: JoinClusterOptions,
): Promise<ClientCertificate | undefined> {
  const { config, clock, logger, signal } = options;
  const client = createHttpClient({ ...access, userAgent: agentName, clock, logger });
  try {
    return await requestCertificate({ client, nodeName: config.nodeName, clock, logger, signal });
  } catch (error) {
    if (!isStatusError(error)) throw error;
    throw new CertificateRefusedError(
      `--bootstrap-clusterconfig: the API server does not issue a certificate: ${error.message}`,
    );
  } finally {
    client.close();
  }
}

/**
 * Ensures that the client config has a valid client certificate. Otherwise a certificate is requested with the
 * credentials of --bootstrap-clusterconfig. The key remains in memory until the certificate is issued, so that a
 * failure does not create or change files.
 *
 * @throws UsageError for a bootstrap file that cannot be used
 * @throws CertificateRefusedError when the API server does not issue a certificate
 */
export async function joinCluster(options: JoinClusterOptions): Promise<void> {
  const { config, clock, logger } = options;
  const { api } = config;
  if (api?.bootstrap === undefined) return;
  const store = new CertificateStore(config.server.certDir);
  const problem = await problemOf(api, store, clock.now());
  if (problem === undefined) return;
  logger.info('the client config cannot be used, a certificate is requested', { path: api.clusterconfig, problem });
  const access = await accessOf(api.bootstrap).catch((error: Error) => {
    throw new UsageError(`--bootstrap-clusterconfig: ${error.message}`);
  });
  const certificate = await bootstrapCertificate(access, options);
  if (certificate === undefined) return;
  await store.keep(certificate, clock.now());
  await replaceFile(api.clusterconfig, configText(access, store.currentPath));
  logger.info('joined the cluster', { path: api.clusterconfig });
}
