import { createRequest, createSelfSigned } from '@keelson/certificates';
import { createInProcessClient } from '@keelson/client';
import { isStatusError, type KubeObject, type UserInfo } from '@keelson/core';
import { systemClock } from '@keelson/core/runtime';
import { CertificateSigningRequest, ClusterRole, ClusterRoleBinding, SubjectAccessReview } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type ControlPlane, type ControlPlaneOptions, createControlPlane } from '../../src/index.ts';

const group = 'rbac.authorization.k8s.io';
const apiGroup = 'certificates.k8s.io';
const signerName = 'example.com/web';

async function start(t: ExecutionContext, options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const made = await createControlPlane({ controllers: false, ...options });
  t.teardown(() => made.close());
  return made;
}

const requestsOf = (plane: ControlPlane, name: string) => {
  const user: UserInfo = { name, groups: ['system:authenticated'] };
  return createInProcessClient(plane.registry, { user, clock: systemClock }).resource(CertificateSigningRequest);
};

/** Allows a user to write approval and status of requests, and to use the signers with these names. */
async function permit(plane: ControlPlane, user: string, verbs: string[], signers: string[]): Promise<void> {
  const parts = ['certificatesigningrequests/approval', 'certificatesigningrequests/status'];
  await plane.client(ClusterRole).create({
    metadata: { name: user },
    rules: [
      { apiGroups: [apiGroup], resources: parts, verbs: ['update', 'patch'] },
      { apiGroups: [apiGroup], resources: ['signers'], resourceNames: signers, verbs },
    ],
  });
  await plane.client(ClusterRoleBinding).create({
    metadata: { name: user },
    subjects: [{ kind: 'User', apiGroup: group, name: user }],
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: user },
  });
  const question = { group: apiGroup, resource: 'signers', verb: verbs[0], name: signers[0] };
  await until(async () => {
    const spec = { user, resourceAttributes: question };
    return (await plane.client(SubjectAccessReview).create({ spec } as SubjectAccessReview)).status?.allowed === true;
  });
}

async function ask(plane: ControlPlane, name: string, signer = signerName, organization = 'devs') {
  const { request } = await createRequest({ commonName: 'jane', organizations: [organization] });
  return plane.client(CertificateSigningRequest).create({
    metadata: { name },
    spec: { request: Buffer.from(request).toString('base64'), signerName: signer, usages: ['client auth'] },
  });
}

const withCondition = (type: string) => ({ status: { conditions: [{ type, status: 'True', reason: 'Test' }] } });

async function rejected(t: ExecutionContext, call: Promise<unknown>): Promise<string> {
  const error = await t.throwsAsync(call);
  if (!isStatusError(error)) throw error ?? new Error('accepted');
  return `${error.status.code} ${error.message}`;
}

test('writing the approval requires the verb approve on the signer or its domain', async (t) => {
  const plane = await start(t);
  await permit(plane, 'other', ['approve'], ['example.com/mail', 'example.org/*']);
  await permit(plane, 'signing', ['sign'], [signerName]);
  await permit(plane, 'exact', ['approve'], [signerName]);
  await permit(plane, 'domain', ['approve'], ['example.com/*']);
  const asked = await ask(plane, 'a');
  const approved = { ...asked, ...withCondition('Approved') } as KubeObject;
  const refused =
    '403 certificatesigningrequests.certificates.k8s.io "a" is forbidden: user not permitted to approve requests with ' +
    'signerName "example.com/web"';
  for (const user of ['other', 'signing']) {
    const requests = requestsOf(plane, user);
    t.is(await rejected(t, requests.updateSubresource('a', 'approval', approved)), refused);
    t.is(await rejected(t, requests.patchSubresource('a', 'approval', 'merge', withCondition('Denied'))), refused);
  }
  const granted = { ...approved, spec: { ...asked.spec, signerName: 'example.org/web' } } as KubeObject;
  t.is(await rejected(t, requestsOf(plane, 'other').updateSubresource('a', 'approval', granted)), refused);
  const dry = await requestsOf(plane, 'domain').updateSubresource('a', 'approval', approved, { dryRun: true });
  t.like(dry, { status: { conditions: [{ type: 'Approved' }] } });
  t.like(await requestsOf(plane, 'exact').updateSubresource('a', 'approval', approved), {
    status: { conditions: [{ type: 'Approved' }] },
  });
});

test('changing certificate or conditions of the status requires the verb sign on the signer', async (t) => {
  const plane = await start(t);
  await permit(plane, 'approving', ['approve'], ['example.com/*']);
  await permit(plane, 'domain', ['sign'], ['example.com/*']);
  await ask(plane, 'a');
  const requests = requestsOf(plane, 'approving');
  const refused =
    '403 certificatesigningrequests.certificates.k8s.io "a" is forbidden: user not permitted to sign requests with ' +
    'signerName "example.com/web"';
  t.is(await rejected(t, requests.patchSubresource('a', 'status', 'merge', withCondition('Failed'))), refused);
  const { certificate } = await createSelfSigned({
    ...{ subject: { commonName: 'jane' }, usages: ['client auth'] },
    ...{ notBefore: new Date(0), notAfter: new Date(Date.now() + 3_600_000) },
  });
  const issued = { status: { certificate: Buffer.from(certificate).toString('base64') } };
  t.is(await rejected(t, requests.patchSubresource('a', 'status', 'merge', issued)), refused);
  const labelled = await requests.patchSubresource('a', 'status', 'merge', { metadata: { labels: { a: 'b' } } });
  t.is(labelled.metadata?.name, 'a', 'other changes need no signer');
  const failed = await requestsOf(plane, 'domain').patchSubresource('a', 'status', 'merge', withCondition('Failed'));
  t.like(failed, { status: { conditions: [{ type: 'Failed' }] } });
  await requests.patchSubresource('a', 'status', 'merge', failed);
  const signed = await requestsOf(plane, 'domain').patchSubresource('a', 'status', 'merge', issued);
  t.like(signed, issued);
});

test('requests to the signer of clients are not for the group system:masters', async (t) => {
  const plane = await start(t);
  const signer = 'kubernetes.io/kube-apiserver-client';
  t.is(
    await rejected(t, ask(plane, 'a', signer, 'system:masters')),
    '403 certificatesigningrequests.certificates.k8s.io "a" is forbidden: use of kubernetes.io/kube-apiserver-client ' +
      'signer with system:masters group is not allowed',
  );
  t.is((await ask(plane, 'devs', signer)).metadata?.name, 'devs');
  t.is((await ask(plane, 'elsewhere', signerName, 'system:masters')).metadata?.name, 'elsewhere');
  const without = await start(t, { disabledAdmissionPlugins: ['CertificateSubjectRestriction'] });
  t.is((await ask(without, 'a', signer, 'system:masters')).metadata?.name, 'a');
});
