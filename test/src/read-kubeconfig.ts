import { readFile } from 'node:fs/promises';

const decode = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString('utf8');

/** The address and the certificates in a kubeconfig that a server wrote. */
export async function readKubeconfig(
  path: string,
): Promise<{ server: string; authority: string; certificate: string; key: string }> {
  const config = JSON.parse(await readFile(path, 'utf8')) as {
    clusters: { cluster: Record<string, string> }[];
    users: { user: Record<string, string> }[];
  };
  const [cluster, user] = [config.clusters[0]?.cluster, config.users[0]?.user];
  return {
    server: cluster?.['server'] ?? '',
    authority: decode(cluster?.['certificate-authority-data']),
    certificate: decode(user?.['client-certificate-data']),
    key: decode(user?.['client-key-data']),
  };
}
