package toolsearch

import "strings"

// synonyms are words with the same meaning in requests for tools. The list is short, since the
// model that searches knows more words and gives them as phrasings.
var synonyms = func() map[string][]string {
	m := map[string][]string{}
	for line := range strings.SplitSeq(synonymGroups, "\n") {
		group := strings.Fields(line)
		for i, w := range group {
			for j, other := range group {
				if i != j {
					m[stem(w)] = append(m[stem(w)], stem(other))
				}
			}
		}
	}
	return m
}()

// synonymGroups has a group in each line.
const synonymGroups = `add create new make insert
delete remove erase drop discard
update edit change modify set
list show all
search find lookup locate
get read fetch retrieve view
send post
start run launch begin trigger
stop cancel abort halt terminate
upload attach
download export
rename move
duplicate copy clone
assign give
close finish complete done
restore recover undelete
approve accept
reject decline
directory folder
file document
repository repo
ticket issue bug
task todo
email mail
picture image photo
user person member people
team group
calendar schedule
meeting event appointment
sprint cycle iteration
message chat
comment note
web internet website site
page document
database db table
column field property
record row entry
setting config configuration preference
environment env
permission access
password secret credential
statistics stats metrics
chart diagram graph plot
error failure exception
log logs
app application
server host machine
build pipeline job
release deployment deploy
customer client
bill invoice
payment charge
price cost
link url
tag label
lodging accommodation hotel
route directions
location place
weather forecast
news headlines`
