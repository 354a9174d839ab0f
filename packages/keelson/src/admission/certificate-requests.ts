import { isDeepStrictEqual } from 'node:util';
import { readCertificateRequest } from '@keelson/certificates';
import { type AdmissionPlugin, type AdmissionRequest, type Authorizer, mastersGroup } from '@keelson/core';
import { CertificateSigningRequest } from '@keelson/kinds';
import { refusal } from './default-admission.ts';

const resources = [`${CertificateSigningRequest.names.plural}.${CertificateSigningRequest.group}`];
const clientSigner = 'kubernetes.io/kube-apiserver-client';

type Decides = Pick<Authorizer, 'authorize'>;

/**
 * The plugins CertificateApproval, CertificateSigning and CertificateSubjectRestriction: the right to write the
 * approval or the status of a request is not the right to use every signer.
 */
export function certificateAdmission(authorizer: Decides): AdmissionPlugin[] {
  return [
    {
      name: 'CertificateApproval',
      resources,
      handles: ({ operation, subresource }) => operation === 'update' && subresource === 'approval',
      validate: (request) => requireSigner('approve', request, authorizer),
    },
    {
      name: 'CertificateSigning',
      resources,
      handles: ({ operation, subresource }) => operation === 'update' && subresource === 'status',
      async validate(request) {
        const { certificate = '', conditions = [] } = (request.object as CertificateSigningRequest).status ?? {};
        const { status: old = {} } = request.oldObject as CertificateSigningRequest;
        if (certificate === (old.certificate ?? '') && isDeepStrictEqual(conditions, old.conditions ?? [])) return;
        await requireSigner('sign', request, authorizer);
      },
    },
    {
      name: 'CertificateSubjectRestriction',
      resources,
      handles: ({ operation, subresource, object }) =>
        operation === 'create' &&
        subresource === undefined &&
        (object as CertificateSigningRequest).spec.signerName === clientSigner,
      validate(request) {
        const { spec } = request.object as CertificateSigningRequest;
        // The validation of the kind has read the same text before.
        const { subject } = readCertificateRequest(Buffer.from(spec.request, 'base64').toString('latin1'));
        if (!subject.organizations.includes(mastersGroup)) return;
        throw refusal(request, `use of ${clientSigner} signer with ${mastersGroup} group is not allowed`);
      },
    },
  ];
}

/** @throws StatusError 403 unless the user has the verb on the signer of the stored request, or on its whole domain */
async function requireSigner(verb: 'approve' | 'sign', request: AdmissionRequest, authorizer: Decides): Promise<void> {
  const { signerName } = (request.oldObject as CertificateSigningRequest).spec;
  for (const name of [signerName, `${signerName.split('/', 1)[0]}/*`]) {
    const attributes = {
      ...{ verb, apiGroup: CertificateSigningRequest.group, apiVersion: '*', resource: 'signers', name },
      ...{ isResourceRequest: true, namespace: '', subresource: '', path: '' },
    };
    if ((await authorizer.authorize(attributes, request.context.user)).allowed) return;
  }
  throw refusal(request, `user not permitted to ${verb} requests with signerName ${JSON.stringify(signerName)}`);
}
