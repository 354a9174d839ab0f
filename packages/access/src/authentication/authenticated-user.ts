import type { UserInfo } from '@keelson/core';

const authenticated = 'system:authenticated';
const unauthenticated = 'system:unauthenticated';

/** Adds the group of all authenticated users, except to the anonymous user and to users outside that group. */
export function authenticatedUser(user: UserInfo): UserInfo {
  const { name, groups } = user;
  if (name === 'system:anonymous' || groups.includes(authenticated) || groups.includes(unauthenticated)) return user;
  return { ...user, groups: [...groups, authenticated] };
}
