import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findKubectl, Kubectl } from '../../src/kubectl.ts';
import { kubectlTest } from '../../src/kubectl-cluster.ts';

const test = kubectlTest();

const file = new URL('../../../../packages/kinds/test/fixtures/certificate-requests.json', import.meta.url);
const pems = JSON.parse(readFileSync(file, 'utf8')) as Record<'person' | 'node', string>;

const manifest = (name: string) => ({
  input: JSON.stringify({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: Buffer.from(pems.person).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client',
      expirationSeconds: 86_400,
      usages: ['client auth'],
    },
  }),
});

test('certificate approve issues the requested certificate, certificate deny does not, and tables show both', async (t) => {
  const { kubectl } = t.context;
  await kubectl.run(['create', '-f', '-'], manifest('jane'));
  await kubectl.run(['create', '-f', '-'], manifest('joe'));
  const table = await kubectl.run(['get', 'csr']);
  t.regex(table, /^NAME\s+AGE\s+SIGNERNAME\s+REQUESTOR\s+REQUESTEDDURATION\s+CONDITION\n/);
  t.regex(table, /^jane\s+\d+s\s+kubernetes\.io\/kube-apiserver-client\s+kubernetes-admin\s+24h\s+Pending$/m);

  await kubectl.run(['certificate', 'approve', 'jane']);
  await kubectl.run(['certificate', 'deny', 'joe']);
  await kubectl.run(['wait', '--for=jsonpath={.status.certificate}', '--timeout=20s', 'csr/jane']);
  t.regex(await kubectl.run(['get', 'csr', 'jane']), /Approved,Issued/);
  t.regex(
    await kubectl.run(['get', 'csr', '--field-selector', 'spec.signerName=kubernetes.io/kube-apiserver-client']),
    /^joe.*Denied$/m,
  );
  const issued = await kubectl.json<{ status: { certificate: string } }>(['get', 'csr', 'jane']);
  const certificate = new X509Certificate(Buffer.from(issued.status.certificate, 'base64'));
  t.regex(certificate.subject, /^CN=jane$/m);
  t.regex((await kubectl.try(['certificate', 'approve', 'joe'])).stderr, /already Denied/);
});

test('auth whoami and auth can-i report the identity and permissions of the bootstrap file', async (t) => {
  const { folder } = t.context;
  const joining = new Kubectl(findKubectl() ?? '', join(folder, 'data', 'bootstrap.kubeconfig'), folder);
  const whoami = await joining.run(['auth', 'whoami']);
  t.regex(whoami, /system:bootstrap:keelson/);
  t.regex(whoami, /system:bootstrappers/);
  t.regex(await joining.run(['auth', 'can-i', 'create', 'csr']), /^yes/);
  t.regex((await joining.try(['auth', 'can-i', 'list', 'pods'])).stdout, /^no/);
});
