import { parseRequestAttributes, type UserInfo } from '@keelson/core';
import test from 'ava';
import { authorizeByGroup } from '../../src/auth/authorize.ts';

const admin: UserInfo = { name: 'admin', groups: ['system:masters'] };
const known: UserInfo = { name: 'jane', groups: ['system:authenticated'] };
const anonymous: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

const table: readonly (readonly [method: string, path: string, anonymous: boolean, known: boolean])[] = [
  ['GET', '/healthz', true, true],
  ['GET', '/readyz/storage', true, true],
  ['GET', '/version', true, true],
  ['GET', '/healthzz', false, false],
  ['GET', '/', false, true],
  ['GET', '/api', false, true],
  ['GET', '/apis/apps/v1', false, true],
  ['GET', '/openapi/v3/api/v1', false, true],
  ['GET', '/metrics', false, false],
  ['POST', '/version', false, false],
  ['GET', '/api/v1/namespaces', false, false],
  ['GET', '/api/v1/namespaces/default/secrets/x', false, false],
  ['DELETE', '/api/v1/namespaces/default', false, false],
];

for (const [method, path, asAnonymous, asKnown] of table) {
  test(`${method} ${path}: anonymous ${asAnonymous ? 'may' : 'may not'}, authenticated ${asKnown ? 'may' : 'may not'}, masters may`, (t) => {
    const attributes = parseRequestAttributes(method, path);
    t.is(authorizeByGroup(attributes, anonymous), asAnonymous);
    t.is(authorizeByGroup(attributes, known), asKnown);
    t.true(authorizeByGroup(attributes, admin));
  });
}
