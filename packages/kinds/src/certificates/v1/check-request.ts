import { X509Certificate } from 'node:crypto';
import { readCertificateRequest } from '@keelson/certificates';
import { fieldError } from '@keelson/core';
import type { Errors } from '../../validation/checks.ts';
import { checkRequiredOneOf, checkText } from '../../validation/checks.ts';
import { checkSignerName } from './check-signer-name.ts';
import { certificateUsages } from './schema/certificate-signing-request.ts';
import type { CertificateSigningRequest } from './schema/index.ts';

const leastSeconds = 600;
const lasting = ['Approved', 'Denied', 'Failed'];

function checkUsages(given: readonly string[], errors: Errors): void {
  if (given.length === 0) errors.push(fieldError.required('spec.usages'));
  const seen = new Set<string>();
  for (const [i, usage] of given.entries()) {
    const path = `spec.usages[${i}]`;
    if (!certificateUsages.includes(usage)) errors.push(fieldError.notSupported(path, usage, certificateUsages));
    if (seen.has(usage)) errors.push(fieldError.duplicate(path, usage));
    seen.add(usage);
  }
}

function checkConditions({ status }: CertificateSigningRequest, errors: Errors): void {
  const seen = new Set<string>();
  for (const [i, { type, status: value }] of (status?.conditions ?? []).entries()) {
    const path = `status.conditions[${i}]`;
    checkText(type, `${path}.type`, errors);
    checkRequiredOneOf(
      value,
      lasting.includes(type) ? ['True'] : ['False', 'True', 'Unknown'],
      `${path}.status`,
      errors,
    );
    if ((type === 'Approved' && seen.has('Denied')) || (type === 'Denied' && seen.has('Approved'))) {
      errors.push(fieldError.invalid(`${path}.type`, type, 'Approved and Denied conditions are mutually exclusive'));
    }
    if (seen.has(type)) errors.push(fieldError.duplicate(`${path}.type`, type));
    seen.add(type);
  }
}

/** Why a text is not a certificate chain; undefined for a valid one. */
function chainProblem(text: string): string | undefined {
  const blocks = text.match(/-----BEGIN [^-]+-----[^-]*-----END [^-]+-----/g) ?? [];
  if (blocks.length === 0) return 'must contain at least one CERTIFICATE PEM block';
  for (const block of blocks) {
    const [, type] = /^-----BEGIN ([^-]+)-----/.exec(block) ?? [];
    if (type !== 'CERTIFICATE') return `only CERTIFICATE PEM blocks are allowed, found ${JSON.stringify(type)}`;
    try {
      new X509Certificate(block);
    } catch (error) {
      return (error as Error).message;
    }
  }
  return undefined;
}

function checkCertificate({ status }: CertificateSigningRequest, errors: Errors): void {
  if (!status?.certificate) return;
  const problem = chainProblem(Buffer.from(status.certificate, 'base64').toString('latin1'));
  if (problem !== undefined) errors.push(fieldError.invalid('status.certificate', '<certificate data>', problem));
}

/** Validates a certificate signing request. */
export function checkRequest(request: CertificateSigningRequest, errors: Errors): void {
  const { spec } = request;
  try {
    readCertificateRequest(Buffer.from(spec.request, 'base64').toString('latin1'));
  } catch (error) {
    errors.push(fieldError.invalid('spec.request', spec.request, (error as Error).message));
  }
  checkUsages(spec.usages ?? [], errors);
  checkSignerName(spec.signerName, 'spec.signerName', errors);
  if (spec.expirationSeconds !== undefined && spec.expirationSeconds < leastSeconds) {
    const detail = 'may not specify a duration less than 600 seconds (10 minutes)';
    errors.push(fieldError.invalid('spec.expirationSeconds', spec.expirationSeconds, detail));
  }
  checkConditions(request, errors);
  checkCertificate(request, errors);
}
