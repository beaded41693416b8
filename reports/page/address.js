// What a reader chose stands in the address: `#?time-1=10,20&flows.sort=3,descending&flows.filter=udp`.
// Links to a row or a section keep their plain form.
"use strict";

const Address = (() => {
  const chosen = new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : "");

  function set(name, value) {
    if (value === null || value === "") chosen.delete(name);
    else chosen.set(name, value);
    const text = chosen.toString();
    history.replaceState(null, "", text ? `#?${text}` : location.pathname + location.search);
  }

  return { get: (name) => chosen.get(name), set };
})();
