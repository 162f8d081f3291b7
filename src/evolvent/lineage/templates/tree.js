
// The address says what is shown: #way-12 the way from the seed program to candidate 12, #whole-tree everybody. Where
// scripts do not run, the whole tree is there.
const tree = document.getElementById("tree");
const told = document.getElementById("told");
const which = document.getElementById("which");
const choose = document.getElementById("choose");
const nodes = [...tree.querySelectorAll(".node")];

function show(id) {
  const last = nodes.find((node) => node.id === id);
  const way = new Set();
  for (let node = last; node; node = document.getElementById(node.dataset.parent)) way.add(node);
  tree.classList.toggle("way", way.size > 0);
  for (const node of nodes) {
    node.hidden = way.size > 0 && !way.has(node);
    node.open = node === last || (way.has(node) && "parent" in node.dataset);
  }
  const changes = way.size === 2 ? "1 change" : way.size - 1 + " changes";
  told.textContent = last ? "candidate " + id.slice(1) + ": " + changes : nodes.length + " candidates";
  tree.scrollTop = 0;
}

function follow() {
  const asked = /^#way-(\d+)$/.exec(location.hash);
  if (!asked && location.hash !== "#whole-tree") return;
  show(asked ? "c" + asked[1] : "");
  choose.scrollIntoView();
}

which.addEventListener("change", () => {
  if (document.getElementById("c" + which.value)) location.hash = "way-" + which.value;
  else told.textContent = "candidate " + which.value + " is not among these";
});
addEventListener("hashchange", follow);
choose.hidden = false;
tree.classList.add("live");
show(tree.dataset.best);
follow();
